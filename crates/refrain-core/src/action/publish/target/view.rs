//! The view that shows landed rows without duplicates.
//!
//! The hash is its first column: PostgreSQL lets `create or replace view` add columns only at the end, and tables gain
//! columns.

use super::{CONTENT_HASH, OCCURRENCE, SOURCE, Target};
use crate::project::Dialect;
use crate::publish::text::names::{FOUND, NUMBER, TARGET};
use crate::publish::{TableName, quoted};

impl Target {
    /// The statement that creates the view of this table; `None` if `found`, the existing relation of that name, is
    /// correct. On PostgreSQL, creating the view is up to its owner.
    pub fn view(
        &self,
        table: &TableName,
        view: &TableName,
        found: &Target,
        dialect: Dialect,
    ) -> Result<Option<String>, String> {
        let name = view.quoted();
        let rest = self.deduplicated(table, dialect);
        if found.name.is_empty() {
            return match dialect {
                Dialect::Sqlite => Ok(Some(format!("create view if not exists {name} as {rest}"))),
                Dialect::Postgres => Err(format!(
                    "the view `{view}` does not exist, and Refrain does not create views on PostgreSQL\n  create it: create view {name} as {rest}"
                )),
            };
        }
        if !found.is_view {
            return Err(format!(
                "`{view}` exists and is not a view\n  give the view another name, or rename that relation and run: create view {name} as {rest}"
            ));
        }
        let Some(lacking) = self.shown().find(|column| found.find(column).is_none()) else {
            return Ok(None);
        };
        let replace = match dialect {
            Dialect::Sqlite => format!("drop view {name}; create view"),
            Dialect::Postgres => "create or replace view".to_owned(),
        };
        Err(format!(
            "the view `{view}` lacks the column `{lacking}` of `{table}`\n  recreate it: {replace} {name} as {rest}"
        ))
    }

    /// The columns that make up the content of a row; rows with equal content differ only in the others.
    fn shown(&self) -> impl Iterator<Item = &str> {
        let names = self.columns.iter().map(|column| column.name.as_str());
        [CONTENT_HASH]
            .into_iter()
            .chain(names.filter(|name| ![SOURCE, CONTENT_HASH, OCCURRENCE].contains(name)))
    }

    /// Selects one row per content: of the first source in sort order, its first occurrence.
    fn deduplicated(&self, table: &TableName, dialect: Dialect) -> String {
        let [source, hash, occurrence] = [SOURCE, CONTENT_HASH, OCCURRENCE].map(quoted);
        let columns = self.shown().map(quoted).collect::<Vec<_>>().join(", ");
        format!(
            "select {columns} from (select {TARGET}.*, {}() over (partition by {TARGET}.{hash} order by {TARGET}.{source}, \
             {TARGET}.{occurrence}) as {NUMBER} from {} as {TARGET}) as {FOUND} where {NUMBER} = 1",
            dialect.built_in("row_number"),
            table.quoted()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::TargetColumn;
    use super::*;

    fn relation(columns: &[&str], is_view: bool) -> Target {
        let column = |name: &&str| TargetColumn {
            name: (*name).to_owned(),
            kind: "text".to_owned(),
            is_generated: false,
        };
        let columns = columns.iter().map(column).collect();
        Target { name: "main.relation".to_owned(), columns, is_view, ..Target::default() }
    }

    #[test]
    fn a_view_is_created_left_alone_or_requested() {
        let [table, view] = ["raw", "events"].map(|name| TableName::parse(name).unwrap());
        let raw = relation(&["body", "source", "content_hash", "occurrence"], false);
        let of = |found: &Target, dialect| raw.view(&table, &view, found, dialect);
        let made = "create view if not exists \"events\" as select \"content_hash\", \"body\" from (select \"refrain:target\".*, \
                    row_number() over (partition by \"refrain:target\".\"content_hash\" order by \"refrain:target\".\"source\", \
                    \"refrain:target\".\"occurrence\") as \"refrain:number\" from \"raw\" as \"refrain:target\") \
                    as \"refrain:found\" where \"refrain:number\" = 1";
        assert_eq!(of(&Target::default(), Dialect::Sqlite), Ok(Some(made.to_owned())));
        let error = of(&Target::default(), Dialect::Postgres).unwrap_err();
        assert!(error.contains("create it: create view \"events\" as select"), "{error}");
        for dialect in [Dialect::Sqlite, Dialect::Postgres] {
            assert_eq!(of(&relation(&["body", "content_hash", "more"], true), dialect), Ok(None));
            let other = of(&relation(&["body", "content_hash"], false), dialect).unwrap_err();
            assert!(other.contains("`events` exists and is not a view"), "{other}");
            let older = of(&relation(&["content_hash"], true), dialect).unwrap_err();
            assert!(older.contains("lacks the column `body` of `raw`"), "{older}");
        }
    }
}
