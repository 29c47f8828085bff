//! Values between the wire and the tables: their Postgres types, their text, their binary form. What a literal of SQL
//! means for a column lives in `literal`; rows and statements are not known here.

pub(crate) mod arrays;
pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod literal;
pub(crate) mod numeric;
pub(crate) mod parameters;
pub(crate) mod types;

pub(crate) use moraine_sql::text::{parse, temporal};
