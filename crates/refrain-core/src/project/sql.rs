//! Statements and the `:name` binds in them.
//!
//! A value reaches SQL only as a bound parameter, so a statement is kept as written, with the positions of its binds; the
//! caller that prepares it replaces them by the database's placeholders. Finding binds and the ends of statements needs a
//! tokenizer, not a parser: it knows strings, quoted names, comments, dollar quotes and casts, and nothing else of the
//! language, so any statement that the database understands passes through unchanged.
//!
//! A colon directly after a word is not a bind (`a[1:n]` is a slice). Other kinds of parameters (`$1`, `?`, `@name`) are
//! rejected: they would receive the values of other positions.

mod scanner;

use std::ops::Range;

use crate::ParseError;
use scanner::{Scanner, Token};

pub(crate) const WHAT: &str = "SQL";

/// The SQL dialect; dialects differ in comments, quotes and parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgres,
}

/// One statement with the binds in it.
///
/// ```
/// use refrain_core::project::{Dialect, Sql};
///
/// let statements = Sql::parse_all("delete from t where d = :ds; insert into t select :ds, ':no'", Dialect::Sqlite)?;
/// let [delete, insert] = statements.as_slice() else { panic!("two statements") };
/// assert_eq!(insert.names(), ["ds"]);
/// assert_eq!(delete.rewrite(|_, position| format!("${position}")), "delete from t where d = $1");
/// # Ok::<(), refrain_core::ParseError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sql {
    text: String,
    binds: Vec<Bind>,
    /// Its offset in the text that it was read from.
    pub(crate) at: usize,
}

/// A position where a value is bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    /// The byte range in the statement, including the colon.
    pub span: Range<usize>,
    /// The name, without the colon.
    pub name: String,
}

impl Dialect {
    /// The dialect of the database at this URL; `None` if it is neither.
    pub fn of_url(url: &str) -> Option<Dialect> {
        let (scheme, _) = url.split_once(':')?;
        match scheme {
            "sqlite" => Some(Dialect::Sqlite),
            "postgres" | "postgresql" => Some(Dialect::Postgres),
            _ => None,
        }
    }
}

impl Sql {
    /// Reads one or more statements, separated by `;`.
    pub fn parse_all(text: &str, dialect: Dialect) -> Result<Vec<Sql>, ParseError> {
        let mut statements = Vec::new();
        let mut open = Open::default();
        for token in Scanner::new(text, dialect) {
            let (token, span) = token?;
            match token {
                Token::End if open.is_inside_trigger(dialect) => {}
                Token::End => {
                    let next = Open { from: span.end, ..Open::default() };
                    statements.extend(std::mem::replace(&mut open, next).close(text, span.start)?);
                }
                _ => open.take(text, token, span),
            }
        }
        statements.extend(open.close(text, text.len())?);
        if statements.is_empty() {
            return Err(ParseError::whole(WHAT, text, "it has no statement"));
        }
        Ok(statements)
    }

    /// Reads exactly one statement.
    pub fn parse(text: &str, dialect: Dialect) -> Result<Sql, ParseError> {
        let mut statements = Sql::parse_all(text, dialect)?;
        match (statements.pop(), statements.first()) {
            (Some(only), None) => Ok(only),
            (second, _) => {
                let at = second.map_or(0, |second| second.at);
                let reason = "a second statement begins here; only one is allowed";
                Err(ParseError::new(WHAT, text, at..text.trim_end().len(), reason).help("write one query"))
            }
        }
    }

    /// The statement as written, without the `;`.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the statement orders its result; an `order by` in a subquery does not count.
    ///
    /// ```
    /// use refrain_core::project::{Dialect, Sql};
    ///
    /// let ordered = |text| Sql::parse(text, Dialect::Sqlite).map(|sql| sql.is_ordered(Dialect::Sqlite));
    /// assert_eq!(ordered("select a from t order by a"), Ok(true));
    /// assert_eq!(ordered("select row_number() over (order by a) from t"), Ok(false));
    /// # Ok::<(), refrain_core::ParseError>(())
    /// ```
    pub fn is_ordered(&self, dialect: Dialect) -> bool {
        let (mut depth, mut before) = (0_usize, "");
        for (token, span) in Scanner::new(&self.text, dialect).map_while(Result::ok) {
            let written = self.text.get(span).unwrap_or_default();
            match (token, written) {
                (Token::Nothing, _) => continue,
                (Token::Other, "(") => depth += 1,
                (Token::Other, ")") => depth = depth.saturating_sub(1),
                (Token::Word, by) if depth == 0 && before.eq_ignore_ascii_case("order") => {
                    return by.eq_ignore_ascii_case("by");
                }
                _ => {}
            }
            before = written;
        }
        false
    }

    /// The positions where values are bound, in order.
    pub fn binds(&self) -> &[Bind] {
        &self.binds
    }

    /// Each bound name once, in the order of the positions that [`rewrite`](Self::rewrite) assigns.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for bind in &self.binds {
            if !names.contains(&bind.name.as_str()) {
                names.push(&bind.name);
            }
        }
        names
    }

    /// The statement with each bind replaced. Each name has one position, counted from 1, however often it occurs.
    pub fn rewrite(&self, mut placeholder: impl FnMut(&str, usize) -> String) -> String {
        let names = self.names();
        let mut text = String::new();
        let mut copied = 0;
        for bind in &self.binds {
            let position = names.iter().position(|name| *name == bind.name).unwrap_or_default() + 1;
            text.push_str(self.text.get(copied..bind.span.start).unwrap_or_default());
            text.push_str(&placeholder(&bind.name, position));
            copied = bind.span.end;
        }
        text.push_str(self.text.get(copied..).unwrap_or_default());
        text
    }
}

/// The statement that is being read.
#[derive(Default)]
struct Open<'t> {
    from: usize,
    binds: Vec<Bind>,
    words: Vec<(&'t str, usize)>,
    last_word: &'t str,
    has_content: bool,
}

impl<'t> Open<'t> {
    fn take(&mut self, text: &'t str, token: Token, span: Range<usize>) {
        let written = text.get(span.clone()).unwrap_or_default();
        self.has_content |= token != Token::Nothing;
        match token {
            Token::Bind => {
                let name = written.trim_start_matches(':').to_owned();
                self.binds.push(Bind { span, name });
            }
            Token::Word => {
                self.last_word = written;
                if self.words.len() < 3 {
                    self.words.push((written, span.start));
                }
            }
            Token::Other => self.last_word = "",
            Token::End | Token::Nothing => {}
        }
    }

    fn word(&self, index: usize) -> String {
        self.words.get(index).map_or_else(String::new, |(word, _)| word.to_ascii_lowercase())
    }

    /// The body of a trigger contains statements and ends with `end;`.
    fn is_inside_trigger(&self, dialect: Dialect) -> bool {
        let is_trigger =
            self.word(0) == "create" && [self.word(1), self.word(2)].contains(&"trigger".to_owned());
        dialect == Dialect::Sqlite && is_trigger && !self.last_word.eq_ignore_ascii_case("end")
    }

    fn close(self, text: &str, end: usize) -> Result<Option<Sql>, ParseError> {
        if !self.has_content {
            return Ok(None);
        }
        let first = self.word(0);
        let ends_transaction = ["begin", "start", "commit", "end", "rollback", "abort"]
            .contains(&first.as_str())
            || (first == "prepare" && self.word(1) == "transaction");
        if let Some((word, at)) = self.words.first()
            && ends_transaction
        {
            let reason = format!("`{word}` would end the transaction that makes the run happen once");
            return Err(ParseError::new(WHAT, text, *at..at + word.len(), reason)
                .help("leave it out: all statements of a run commit together"));
        }
        let piece = text.get(self.from..end).unwrap_or_default();
        let at = self.from + (piece.len() - piece.trim_start().len());
        let shift = |bind: Bind| Bind { span: bind.span.start - at..bind.span.end - at, ..bind };
        let binds = self.binds.into_iter().map(shift).collect();
        Ok(Some(Sql { text: piece.trim().to_owned(), binds, at }))
    }
}

#[cfg(test)]
mod tests {
    use super::Dialect::{Postgres, Sqlite};
    use super::*;
    use proptest::prelude::*;

    fn names(text: &str, dialect: Dialect) -> Vec<String> {
        let statements = Sql::parse_all(text, dialect).unwrap();
        statements.iter().flat_map(|sql| sql.names()).map(str::to_owned).collect()
    }

    #[test]
    fn binds_are_found_where_a_database_would_find_them() {
        for (text, expected) in [
            ("select :ds", &["ds"][..]),
            ("select :ds, :scope, :ds", &["ds", "scope"]),
            ("where a=:ds and b>=:window_start", &["ds", "window_start"]),
            ("select (:payload.user.id)", &["payload.user.id"]),
            ("select ':no', 'it''s :no', \":no\"", &[]),
            ("select 1 -- :no\n, :ds", &["ds"]),
            ("select /* :no */ :ds", &["ds"]),
            ("select :ds::date", &["ds"]),
            ("select x::date, a := 1", &[]),
            ("select a[1:n]", &[]),
            ("select ':no", &["unterminated"]),
        ] {
            for dialect in [Sqlite, Postgres] {
                match expected {
                    ["unterminated"] => assert!(Sql::parse_all(text, dialect).is_err(), "{text}"),
                    _ => assert_eq!(names(text, dialect), expected, "{text}"),
                }
            }
        }
    }

    #[test]
    fn only_an_order_by_at_the_end_of_the_query_counts() {
        for (text, expected) in [
            ("select a from t", false),
            ("select a from t ORDER /* so */ BY a desc limit 3", true),
            ("select a from (select a from t order by a) as s", false),
            ("with s as (select a from t order by a) select a from s", false),
            ("select a from s union select a from t order by 1", true),
            ("select 'order by', \"order\" from t -- order by a", false),
            ("select a from t group by a", false),
        ] {
            for dialect in [Sqlite, Postgres] {
                assert_eq!(Sql::parse(text, dialect).unwrap().is_ordered(dialect), expected, "{text}");
            }
        }
    }

    #[test]
    fn each_database_has_quotes_of_its_own() {
        for (text, expected) in [
            ("select $$ :no ; $$, :ds", &["ds"][..]),
            ("select $q$ $$ :no $q$, :ds", &["ds"]),
            ("select /* /* :no */ :no */ :ds", &["ds"]),
            ("select E'it\\'s :no', :ds", &["ds"]),
            ("select a ? 'b', @ -5, :ds", &["ds"]),
        ] {
            assert_eq!(names(text, Postgres), expected, "{text}");
        }
        for (text, expected) in [
            ("select [a :no], `b :no`, :ds", &["ds"][..]),
            ("select /* /* :no */ :ds", &["ds"]),
            ("select 'a\\', :ds", &["ds"]),
        ] {
            assert_eq!(names(text, Sqlite), expected, "{text}");
        }
    }

    #[test]
    fn other_kinds_of_parameters_are_refused() {
        for (text, dialect) in
            [("select $1", Postgres), ("select ?", Sqlite), ("select ?2", Sqlite), ("select @a, $b", Sqlite)]
        {
            let error = Sql::parse_all(text, dialect).unwrap_err();
            assert!(error.advice().unwrap().contains(":ds"), "{text}: {error}");
        }
    }

    #[test]
    fn statements_end_at_semicolons() {
        let text =
            "-- first\ndelete from t where d = :ds;\n\n; insert into t values (';', :ds) ; -- nothing\n";
        let statements = Sql::parse_all(text, Sqlite).unwrap();
        let texts: Vec<&str> = statements.iter().map(Sql::text).collect();
        assert_eq!(texts, ["-- first\ndelete from t where d = :ds", "insert into t values (';', :ds)"]);
        for sql in &statements {
            for bind in sql.binds() {
                assert_eq!(&sql.text()[bind.span.clone()], ":ds");
            }
            assert_eq!(&text[sql.at..sql.at + sql.text().len()], sql.text());
        }
    }

    #[test]
    fn the_body_of_a_trigger_is_not_cut() {
        let text =
            "create trigger t after insert on a begin delete from b; update c set d = 1; end; select :ds";
        assert_eq!(Sql::parse_all(text, Sqlite).unwrap().len(), 2);
    }

    #[test]
    fn a_statement_that_ends_the_transaction_is_refused() {
        for text in ["commit", "select 1; COMMIT", "/* a */ begin; select 1", "prepare transaction 'x'"] {
            let error = Sql::parse_all(text, Postgres).unwrap_err();
            assert!(error.reason().contains("transaction"), "{text}: {error}");
        }
        assert!(Sql::parse_all("savepoint a; select 1", Sqlite).is_ok());
    }

    #[test]
    fn an_empty_text_and_two_statements_are_refused() {
        for text in ["", "  ", ";;", "-- only a comment", "/* a */ ;"] {
            assert!(Sql::parse_all(text, Sqlite).is_err(), "{text}");
        }
        let error = Sql::parse("select 1; select 2", Sqlite).unwrap_err();
        assert_eq!(error.span(), 10..18);
    }

    #[test]
    fn a_name_has_one_position_however_often_it_occurs() {
        let sql = Sql::parse("select :b, :a, :b from t where c = :a", Postgres).unwrap();
        let text = sql.rewrite(|name, position| match name {
            "a" => format!("cast(${position} as date)"),
            _ => format!("${position}"),
        });
        assert_eq!(text, "select $1, cast($2 as date), $1 from t where c = cast($2 as date)");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(
            text in "\\PC*|([a-zE:;'\"$\\[\\]`?@\\\\*/ \n-]|\\$q\\$|/\\*|--|:ds|é){0,24}"
        ) {
            for dialect in [Sqlite, Postgres] {
                let Ok(statements) = Sql::parse_all(&text, dialect) else { continue };
                for sql in statements {
                    let back = sql.rewrite(|name, _| format!(":{name}"));
                    prop_assert_eq!(back, sql.text());
                }
            }
        }

        #[test]
        fn text_without_binds_is_unchanged(text in "[a-z0-9 ,.()*=<>'%-]{1,40}") {
            if let Ok(statements) = Sql::parse_all(&text, Postgres) {
                let written: Vec<String> = statements.iter().map(|sql| sql.rewrite(|_, _| "$".to_owned())).collect();
                prop_assert_eq!(written.concat(), text.trim());
            }
        }
    }
}
