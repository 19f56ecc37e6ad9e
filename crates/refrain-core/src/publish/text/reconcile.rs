//! A source beside a table: what only one of them has, and what they say otherwise. Nothing here writes to the table.
//!
//! Every question is answered by a count and a list of the first few, as JSON.

use super::{Texts, list, literal};
use crate::project::Dialect;
use crate::publish::quoted;
use crate::publish::target::{CONTENT_HASH, SOURCE};

/// The columns that a staged row has beside its own: the key of its unit, what tells the newer of two, and of which columns
/// it speaks, by [`spoken`].
pub const OF_A_UNIT: [&str; 4] = ["refrain_unit", "refrain_order", "refrain_number", "refrain_spoken"];

/// How many are listed.
const LISTED: usize = 20;

/// Of which columns a unit speaks, by their places among all of them.
pub fn spoken(places: impl IntoIterator<Item = usize>) -> String {
    places.into_iter().fold(",".to_owned(), |text, place| format!("{text}{place},"))
}

impl Texts {
    /// Makes the table for the rows of a source.
    pub fn make_compared(&self) -> String {
        let names = self.names().map(|column| format!("t.{}", quoted(column)));
        let [unit, order, number, spoken] = OF_A_UNIT;
        let own = [
            format!("cast('' as text) as {unit}"),
            format!("cast(0 as bigint) as {order}"),
            format!("cast(0 as bigint) as {number}"),
            format!("cast('' as text) as {spoken}"),
        ];
        self.temporary(&self.stage, &list(names.chain(own)))
    }

    /// Fills in ids that are derived, on a server.
    pub fn derive(&self) -> Option<String> {
        let set =
            self.derived.iter().map(|(column, expression)| format!("{} = {expression}", quoted(column)));
        let set = list(set);
        (self.dialect == Dialect::Postgres && !set.is_empty())
            .then(|| format!("update {} as s set {set}", self.stage()))
    }

    /// Makes what is staged easy to find.
    pub fn index_compared(&self) -> Vec<String> {
        let place = if self.dialect == Dialect::Sqlite { "temp." } else { "" };
        let index = |name: &str, columns: String| {
            let name = quoted(&format!("{}_{name}", self.stage));
            format!("create index {place}{name} on {} ({columns})", self.stage())
        };
        let staged: Vec<&str> = self.keys().filter(|key| self.names().any(|name| name == *key)).collect();
        let [unit, ..] = OF_A_UNIT;
        vec![index("unit", unit.to_owned()), index("key", list(staged.into_iter().map(quoted)))]
    }

    /// Removes units that were told again later.
    pub fn told_again(&self) -> String {
        let [unit, ..] = OF_A_UNIT;
        self.later(&format!("l.{unit} = s.{unit}"))
    }

    /// Removes rows in whose place a later one came.
    pub fn replaced(&self) -> String {
        self.later(&self.same_key("l", "s"))
    }

    fn later(&self, same: &str) -> String {
        let (stage, [_, order, number, _]) = (self.stage(), OF_A_UNIT);
        format!(
            "delete from {stage} as s where exists (select 1 from {stage} as l where {same} \
             and (l.{order}, l.{number}) > (s.{order}, s.{number}))"
        )
    }

    /// Units that the table has not.
    pub fn lost(&self) -> String {
        let (table, stage, same) = (self.table(), self.stage(), self.same_key("t", "s"));
        let nothing = self.keys().next().map(|key| format!("t.{} is null", quoted(key))).unwrap_or_default();
        // A join, for which SQLite makes an index if the table has none: for `not exists` it does not.
        self.listed(&format!(
            "select s.refrain_unit as shown from {stage} as s left join {table} as t on {same} where {nothing}"
        ))
    }

    /// Units that the table has more than once.
    pub fn duplicated(&self) -> String {
        let (table, stage, same) = (self.table(), self.stage(), self.same_key("t", "s"));
        self.listed(&format!(
            "select s.refrain_unit as shown from {stage} as s join {table} as t on {same} group by s.refrain_unit \
             having count(*) > 1"
        ))
    }

    /// Units of which the table says something else in one of these columns. Of what a unit does not speak, the table may say
    /// anything: that is left alone when it is written. `incomparable` are columns of a type that knows no equality.
    pub fn changed(&self, columns: &[String], incomparable: &[String]) -> Option<String> {
        let (table, stage, same) = (self.table(), self.stage(), self.same_key("t", "s"));
        let differs = columns.iter().filter(|name| self.keys().all(|key| key != name.as_str())).map(|name| {
            let column = quoted(name);
            let differs = if incomparable.contains(name) {
                format!("cast(t.{column} as text) is distinct from cast(s.{column} as text)")
            } else {
                format!("t.{column} is distinct from s.{column}")
            };
            match self.columns.iter().position(|column| column == name) {
                Some(place) => format!("({differs} and {})", self.is_spoken_of(place)),
                None => differs,
            }
        });
        let differs: Vec<String> = differs.collect();
        (!differs.is_empty()).then(|| {
            let differs = differs.join(" or ");
            self.listed(&format!(
                "select distinct s.refrain_unit as shown from {stage} as s join {table} as t on {same} where {differs}"
            ))
        })
    }

    fn is_spoken_of(&self, place: usize) -> String {
        let [.., column] = OF_A_UNIT;
        let find = match self.dialect {
            Dialect::Postgres => "strpos",
            Dialect::Sqlite => "instr",
        };
        format!("{find}(s.{column}, {}) > 0", literal(&spoken([place])))
    }

    /// Rows that are owned, and that the source has not.
    pub fn extra(&self, owns: &str) -> String {
        let (table, stage, same) = (self.table(), self.stage(), self.same_key("s", "target"));
        let shown = self.keys().map(|key| {
            let name = literal(&format!("{key}="));
            format!("{name} || coalesce(cast(target.{} as text), 'null')", quoted(key))
        });
        let shown = shown.collect::<Vec<_>>().join(" || ', ' || ");
        self.listed(&format!(
            "select {shown} as shown from {table} as target where ({owns}\n) and not exists (select 1 from {stage} as s where {same})"
        ))
    }

    /// Units whose content has landed less often than they say it, of this source; `place` is that of its name.
    pub fn not_landed(&self, place: &str) -> String {
        self.landed(place, "coalesce(t.there, 0) < s.told")
    }

    /// Units whose content has landed more often than they say it.
    pub fn landed_again(&self, place: &str) -> String {
        self.landed(place, "t.there > s.told")
    }

    fn landed(&self, place: &str, which: &str) -> String {
        let (table, stage) = (self.table(), self.stage());
        let (source, hash) = (quoted(SOURCE), quoted(CONTENT_HASH));
        self.listed(&format!(
            "select s.shown from (select {hash}, min(refrain_unit) as shown, count(*) as told from {stage} group by {hash}) as s \
             left join (select {hash}, count(*) as there from {table} where {source} = {place} group by {hash}) as t \
             on t.{hash} = s.{hash} where {which}"
        ))
    }

    fn listed(&self, which: &str) -> String {
        let shown = match self.dialect {
            Dialect::Postgres => "json_agg(f.shown order by f.number)",
            Dialect::Sqlite => "json_group_array(f.shown)",
        };
        format!(
            "select count(*), cast({shown} filter (where f.number <= {LISTED}) as text) from \
             (select i.shown, row_number() over (order by i.shown) as number from ({which}) as i) as f"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publish::TableName;

    fn texts(dialect: Dialect) -> Texts {
        Texts {
            dialect,
            table: TableName::parse("invoices").unwrap(),
            stage: "refrain_compared".to_owned(),
            columns: ["id", "total"].map(str::to_owned).to_vec(),
            derived: Vec::new(),
            key: vec![("id".to_owned(), "bigint".to_owned())],
        }
    }

    #[test]
    fn nothing_but_what_is_staged_is_ever_written_to() {
        for dialect in [Dialect::Postgres, Dialect::Sqlite] {
            let texts = texts(dialect);
            let columns = ["id", "total"].map(str::to_owned);
            let asked =
                [texts.lost(), texts.duplicated(), texts.extra("day = $1 -- today"), texts.not_landed("$1")];
            for text in
                asked.into_iter().chain([texts.landed_again("$1")]).chain(texts.changed(&columns, &[]))
            {
                assert!(text.starts_with("select count(*), cast("), "{text}");
            }
            for text in [texts.told_again(), texts.replaced()] {
                assert!(text.starts_with("delete from \"refrain_compared\" as s where exists"), "{text}");
            }
        }
    }

    #[test]
    fn what_is_lost_is_asked_by_the_key_of_the_table() {
        assert_eq!(
            texts(Dialect::Postgres).lost(),
            "select count(*), cast(json_agg(f.shown order by f.number) filter (where f.number <= 20) as text) from \
             (select i.shown, row_number() over (order by i.shown) as number from (select s.refrain_unit as shown from \
             \"refrain_compared\" as s left join \"invoices\" as t on t.\"id\" = s.\"id\" where t.\"id\" is null) as i) as f"
        );
        let key = ["id".to_owned()];
        assert_eq!(texts(Dialect::Sqlite).changed(&key, &[]), None, "there is nothing beside the key");
    }
}
