//! Compares a source with a table: rows that only one of them has, and rows that differ. Nothing here writes to the table.
//!
//! Every statement returns a count and the first few findings as JSON.

use super::names::{EXPECTED, FOUND, INNER, LATER, NUMBER, ROW, SHOWN, TARGET, THERE};
use super::{TableStatements, list};
use crate::project::Dialect;
use crate::publish::quoted;
use crate::publish::target::{CONTENT_HASH, SOURCE};

/// Additional columns of a staged row: the key of its unit, what orders the newer of two, and which columns it sets, as
/// [`spoken`] encodes them.
pub const OF_A_UNIT: [&str; 4] = ["refrain:unit", "refrain:order", "refrain:number", "refrain:spoken"];

/// How many findings are listed.
const LISTED: usize = 20;

/// Encodes which columns a unit sets, by their positions among all columns.
pub fn spoken(places: impl IntoIterator<Item = usize>) -> String {
    places.into_iter().fold(",".to_owned(), |text, place| format!("{text}{place},"))
}

/// The column with the key of a unit, in a statement.
fn unit() -> String {
    let [unit, ..] = OF_A_UNIT;
    quoted(unit)
}

impl TableStatements {
    /// Creates the table for the rows of a source.
    pub fn make_compared(&self) -> String {
        let names = self.names().map(|column| format!("{TARGET}.{}", quoted(column)));
        let [unit, order, number, spoken] = OF_A_UNIT.map(quoted);
        let text = self.as_text("''");
        let own = [
            format!("{text} as {unit}"),
            format!("cast(0 as bigint) as {order}"),
            format!("cast(0 as bigint) as {number}"),
            format!("{text} as {spoken}"),
        ];
        self.temporary(&self.stage, &list(names.chain(own)))
    }

    /// Fills in derived surrogate keys, on PostgreSQL.
    pub fn derive(&self) -> Option<String> {
        let set =
            self.derived.iter().map(|(column, expression)| format!("{} = {expression}", quoted(column)));
        let set = list(set);
        (self.dialect == Dialect::Postgres && !set.is_empty())
            .then(|| format!("update {} as {ROW} set {set}", self.stage()))
    }

    /// Indexes the staged rows.
    pub fn index_compared(&self) -> Vec<String> {
        let [unit, ..] = OF_A_UNIT;
        vec![self.index("unit", &quoted(unit)), self.index_keys()]
    }

    /// Deletes units that arrived again later.
    pub fn delete_repeated(&self) -> String {
        let unit = unit();
        self.later(&format!("{LATER}.{unit} = {ROW}.{unit}"))
    }

    /// Deletes rows that a later row replaces.
    pub fn delete_replaced(&self) -> String {
        self.later(&self.same_key(LATER, ROW))
    }

    fn later(&self, same: &str) -> String {
        let (stage, [_, order, number, _]) = (self.stage(), OF_A_UNIT.map(quoted));
        format!(
            "delete from {stage} as {ROW} where exists (select 1 from {stage} as {LATER} where {same} \
             and ({LATER}.{order}, {LATER}.{number}) > ({ROW}.{order}, {ROW}.{number}))"
        )
    }

    /// Finds units that the table lacks.
    pub fn lost(&self) -> String {
        let (table, stage, same, unit) = (self.table(), self.stage(), self.same_key(TARGET, ROW), unit());
        let nothing =
            self.keys().next().map(|key| format!("{TARGET}.{} is null", quoted(key))).unwrap_or_default();
        // A join, because SQLite builds an automatic index for it, and builds none for `not exists`.
        self.listed(&format!(
            "select {ROW}.{unit} as {SHOWN} from {stage} as {ROW} left join {table} as {TARGET} on {same} where {nothing}"
        ))
    }

    /// Finds units that the table has more than once.
    pub fn duplicated(&self) -> String {
        let (table, stage, same, unit) = (self.table(), self.stage(), self.same_key(TARGET, ROW), unit());
        self.listed(&format!(
            "select {ROW}.{unit} as {SHOWN} from {stage} as {ROW} join {table} as {TARGET} on {same} group by {ROW}.{unit} \
             having {}(*) > 1",
            self.built_in("count")
        ))
    }

    /// Finds units whose row in the table differs in one of these columns. Columns that a unit does not set may have any
    /// value: writing leaves them alone. `incomparable` are columns whose type has no equality operator.
    pub fn changed(&self, columns: &[String], incomparable: &[String]) -> Option<String> {
        let (table, stage, same, unit) = (self.table(), self.stage(), self.same_key(TARGET, ROW), unit());
        let differs = columns.iter().filter(|name| self.keys().all(|key| key != name.as_str())).map(|name| {
            let differs = self.differs(name, incomparable);
            match self.columns.iter().position(|column| column == name) {
                Some(place) => format!("({differs} and {})", self.is_spoken_of(place)),
                None => differs,
            }
        });
        let differs: Vec<String> = differs.collect();
        (!differs.is_empty()).then(|| {
            let differs = differs.join(" or ");
            self.listed(&format!(
                "select distinct {ROW}.{unit} as {SHOWN} from {stage} as {ROW} join {table} as {TARGET} on {same} where {differs}"
            ))
        })
    }

    /// The condition that a row of the table and a staged row differ in a column.
    pub(super) fn differs(&self, name: &String, incomparable: &[String]) -> String {
        let column = quoted(name);
        if incomparable.contains(name) {
            let text = |row: &str| self.as_text(&format!("{row}.{column}"));
            format!("{} is distinct from {}", text(TARGET), text(ROW))
        } else {
            format!("{TARGET}.{column} is distinct from {ROW}.{column}")
        }
    }

    fn is_spoken_of(&self, place: usize) -> String {
        let [.., column] = OF_A_UNIT.map(quoted);
        let find = match self.dialect {
            Dialect::Postgres => self.built_in("strpos"),
            Dialect::Sqlite => "instr".to_owned(),
        };
        format!("{find}({ROW}.{column}, {}) > 0", self.literal(&spoken([place])))
    }

    /// Finds owned rows that the source lacks.
    pub fn extra(&self, owns: &str) -> String {
        let (table, stage, same) = (self.table(), self.stage(), self.same_key(ROW, TARGET));
        let shown = self.keys().map(|key| {
            let name = self.literal(&format!("{key}="));
            format!("{name} || coalesce({}, 'null')", self.as_text(&format!("{TARGET}.{}", quoted(key))))
        });
        let shown = shown.collect::<Vec<_>>().join(" || ', ' || ");
        self.listed(&format!(
            "select {shown} as {SHOWN} from {table} as {TARGET} where ({owns}\n) and not exists (select 1 from {stage} as {ROW} where {same})"
        ))
    }

    /// Finds units whose content has landed less often than this source sent it; `place` is the parameter with its name.
    pub fn not_landed(&self, place: &str) -> String {
        self.landed(place, &format!("coalesce({TARGET}.{THERE}, 0) < {ROW}.{EXPECTED}"))
    }

    /// Finds units whose content has landed more often than this source sent it.
    pub fn landed_again(&self, place: &str) -> String {
        self.landed(place, &format!("{TARGET}.{THERE} > {ROW}.{EXPECTED}"))
    }

    fn landed(&self, place: &str, which: &str) -> String {
        let (table, stage) = (self.table(), self.stage());
        let (source, hash, unit) = (quoted(SOURCE), quoted(CONTENT_HASH), unit());
        let [count, min] = ["count", "min"].map(|name| self.built_in(name));
        self.listed(&format!(
            "select {ROW}.{SHOWN} from (select {hash}, {min}({unit}) as {SHOWN}, {count}(*) as {EXPECTED} from {stage} \
             group by {hash}) as {ROW} left join (select {hash}, {count}(*) as {THERE} from {table} where {source} = {place} \
             group by {hash}) as {TARGET} on {TARGET}.{hash} = {ROW}.{hash} where {which}"
        ))
    }

    pub(super) fn listed(&self, which: &str) -> String {
        let shown = match self.dialect {
            Dialect::Postgres => {
                format!("{}({FOUND}.{SHOWN} order by {FOUND}.{NUMBER})", self.built_in("json_agg"))
            }
            Dialect::Sqlite => format!("json_group_array({FOUND}.{SHOWN})"),
        };
        let shown = self.as_text(&format!("{shown} filter (where {FOUND}.{NUMBER} <= {LISTED})"));
        let [count, number] = ["count", "row_number"].map(|name| self.built_in(name));
        format!(
            "select {count}(*), {shown} from (select {INNER}.{SHOWN}, {number}() over (order by {INNER}.{SHOWN}) as {NUMBER} \
             from ({which}) as {INNER}) as {FOUND}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publish::TableName;

    fn texts(dialect: Dialect) -> TableStatements {
        TableStatements {
            dialect,
            table: TableName::parse("invoices").unwrap(),
            stage: "refrain:compared".to_owned(),
            columns: ["id", "total"].map(str::to_owned).to_vec(),
            derived: Vec::new(),
            key: vec![("id".to_owned(), "bigint".to_owned())],
        }
    }

    #[test]
    fn only_staged_rows_are_ever_written() {
        for dialect in [Dialect::Postgres, Dialect::Sqlite] {
            let texts = texts(dialect);
            let columns = ["id", "total"].map(str::to_owned);
            let compared =
                [texts.lost(), texts.duplicated(), texts.extra("day = $1 -- today"), texts.not_landed("$1")];
            for text in
                compared.into_iter().chain([texts.landed_again("$1")]).chain(texts.changed(&columns, &[]))
            {
                let function = dialect.built_in("count");
                assert!(text.starts_with(&format!("select {function}(*), cast(")), "{text}");
            }
            for text in [texts.delete_repeated(), texts.delete_replaced()] {
                assert!(
                    text.starts_with("delete from \"refrain:compared\" as \"refrain:row\" where exists"),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn missing_rows_are_found_by_the_key_of_the_table() {
        assert_eq!(
            texts(Dialect::Sqlite).lost().replace("\"refrain:", "\""),
            "select count(*), cast(json_group_array(\"found\".\"shown\") filter (where \"found\".\"number\" <= 20) as text) \
             from (select \"inner\".\"shown\", row_number() over (order by \"inner\".\"shown\") as \"number\" from (select \
             \"row\".\"unit\" as \"shown\" from \"compared\" as \"row\" left join \"invoices\" as \"target\" on \
             \"target\".\"id\" = \"row\".\"id\" where \"target\".\"id\" is null) as \"inner\") as \"found\""
        );
        let key = ["id".to_owned()];
        assert_eq!(texts(Dialect::Sqlite).changed(&key, &[]), None, "there is nothing beside the key");
    }
}
