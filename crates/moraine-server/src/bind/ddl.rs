//! CREATE and DROP: the tables of a lake by their names, temporary tables, schemas.

use moraine_tables::{Column, Relation};
use sqlparser::ast::{
    ColumnDef, ColumnOption, CreateTable as SqlCreateTable, ObjectType, OnCommit, SchemaName, Statement,
};

use super::names::{fold, parts};
use super::{Binder, Bound, CreateTable};
use crate::errors::SqlError;
use crate::temporary::TemporaryTable;
use crate::values::types;

impl Binder<'_> {
    pub(super) fn create_table(&self, create: &SqlCreateTable) -> Result<Bound, SqlError> {
        for (present, clause) in [
            (create.query.is_some(), "CREATE TABLE … AS"),
            (create.like.is_some(), "CREATE TABLE … LIKE"),
            (create.or_replace, "CREATE OR REPLACE TABLE"),
            (create.external, "CREATE EXTERNAL TABLE"),
            (
                create.partition_by.is_some() || create.partition_of.is_some(),
                "a partitioned table",
            ),
            (create.inherits.is_some(), "INHERITS"),
            (!create.constraints.is_empty(), "a table constraint"),
        ] {
            if present {
                return Err(SqlError::unsupported(clause));
            }
        }
        let name = self.table_name(&create.name)?;
        let columns = create
            .columns
            .iter()
            .map(column)
            .collect::<Result<Vec<Column>, SqlError>>()?;
        if create.temporary {
            let drop_on_commit = match create.on_commit {
                Some(OnCommit::Drop) => true,
                None | Some(OnCommit::PreserveRows) => false,
                Some(OnCommit::DeleteRows) => return Err(SqlError::unsupported("ON COMMIT DELETE ROWS")),
            };
            let table = TemporaryTable {
                name: name.table,
                columns,
                rows: Vec::new(),
                drop_on_commit,
            };
            return Ok(Bound::CreateTemporary(table));
        }
        let Some(relation) = Relation::parse(&name.table) else {
            return Err(SqlError::unsupported(format!("creating the table \"{}\"", name.table))
                .hint("A lake has the tables of DuckLake's catalog and no others; only temporary tables may have other names."));
        };
        let lake = self.schema_of(&name);
        Ok(Bound::CreateTable(CreateTable {
            lake,
            relation,
            columns,
            if_not_exists: create.if_not_exists,
        }))
    }

    pub(super) fn create_schema(&self, name: &SchemaName, if_not_exists: bool) -> Result<Bound, SqlError> {
        let SchemaName::Simple(name) = name else {
            return Err(SqlError::unsupported("CREATE SCHEMA … AUTHORIZATION"));
        };
        match parts(name)?.as_slice() {
            [name] => Ok(Bound::CreateSchema {
                name: name.clone(),
                if_not_exists,
            }),
            _ => Err(SqlError::unsupported(format!("CREATE SCHEMA {name}"))),
        }
    }

    pub(super) fn drop_object(&self, statement: &Statement) -> Result<Bound, SqlError> {
        let Statement::Drop {
            object_type,
            if_exists,
            names,
            ..
        } = statement
        else {
            return Err(SqlError::internal("not a DROP"));
        };
        if *object_type != ObjectType::Table {
            return Err(SqlError::unsupported(format!("DROP {object_type}")));
        }
        let names = names
            .iter()
            .map(|name| self.table_name(name))
            .collect::<Result<Vec<_>, SqlError>>()?;
        Ok(Bound::DropTables {
            names,
            if_exists: *if_exists,
        })
    }
}

fn column(definition: &ColumnDef) -> Result<Column, SqlError> {
    let mut not_null = false;
    for option in &definition.options {
        match &option.option {
            ColumnOption::Null => {}
            ColumnOption::NotNull | ColumnOption::PrimaryKey(_) => not_null = true,
            other => return Err(SqlError::unsupported(format!("the column option {other}"))),
        }
    }
    let column_type = types::from_sql(&definition.data_type)?;
    Ok(Column {
        name: fold(&definition.name),
        column_type,
        not_null,
    })
}
