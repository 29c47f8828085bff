//! Verbs of macros.

use moraine_codec::Record;
use moraine_codec::proto::{self, MacroValue};
use moraine_keys::MacroKey;

use crate::change::Change;
use crate::changes_made::QualifiedName;
use crate::lake::entities::{NO_DEFAULT, same_name};
use crate::lake::{Macro, MacroImplementation, MacroKind};
use crate::verbs::changes::{Created, CreatedObject};
use crate::verbs::definitions::MacroDefinition;
use crate::verbs::error::{ObjectKind, VerbError};
use crate::verbs::names;
use crate::verbs::transaction::LakeTransaction;
use crate::verbs::work::Work;

/// The type text of a parameter of any type, and of a default that is not there.
const UNKNOWN_TYPE: &str = "unknown";

impl LakeTransaction {
    /// Creates a macro in a schema and gives its id.
    ///
    /// # Errors
    /// [`VerbError::NotFound`] for the schema; [`VerbError::AlreadyExists`] where a macro of its kind has the name;
    /// [`VerbError::InvalidName`]; [`VerbError::Refused`] for one without overloads.
    pub async fn create_macro(&self, schema: &str, definition: MacroDefinition) -> Result<u64, VerbError> {
        let mut verb = self.verb().await?;
        let created = verb.create_macro(schema, definition).await;
        verb.done(created)
    }

    /// Drops a macro with all its overloads.
    ///
    /// # Errors
    /// [`VerbError::NotFound`].
    pub async fn drop_macro(&self, schema: &str, name: &str, kind: MacroKind) -> Result<(), VerbError> {
        let mut verb = self.verb().await?;
        let dropped = match verb.macro_of_kind(schema, name, kind).await {
            Ok(found) => verb.drop_macro_value(found).await,
            Err(error) => Err(error),
        };
        verb.done(dropped)
    }
}

fn object_kind(kind: MacroKind) -> ObjectKind {
    match kind {
        MacroKind::Scalar => ObjectKind::ScalarMacro,
        MacroKind::Table => ObjectKind::TableMacro,
    }
}

impl Work {
    /// The live macro of a name: where a scalar and a table macro share it, the scalar one.
    pub(crate) async fn macro_named(&self, schema: &str, name: &str) -> Result<MacroValue, VerbError> {
        match self.macro_of_kind(schema, name, MacroKind::Scalar).await {
            Err(VerbError::NotFound { .. }) => self.macro_of_kind(schema, name, MacroKind::Table).await,
            found => found,
        }
    }

    async fn macro_of_kind(
        &self,
        schema: &str,
        name: &str,
        kind: MacroKind,
    ) -> Result<MacroValue, VerbError> {
        let schema_id = self.schema(schema).await?.schema_id;
        let found = self.reading()?.macros_named(schema_id, name).await?;
        found
            .into_iter()
            .find(|found| Macro::of(found.clone()).kind == kind)
            .ok_or_else(|| VerbError::not_found(object_kind(kind), format!("{schema}.{name}")))
    }

    async fn create_macro(&mut self, schema: &str, definition: MacroDefinition) -> Result<u64, VerbError> {
        let kind = object_kind(definition.kind);
        names::check(kind, &definition.name)?;
        let schema = self.schema(schema).await?;
        let named = self
            .reading()?
            .macros_named(schema.schema_id, &definition.name)
            .await?;
        if named
            .into_iter()
            .any(|found| Macro::of(found).kind == definition.kind)
        {
            return Err(VerbError::exists(kind, &definition.name));
        }
        if definition.implementations.is_empty() {
            return Err(VerbError::refused(format!(
                "macro {} must have an overload",
                definition.name
            )));
        }
        for implementation in &definition.implementations {
            check_parameters(&definition.name, implementation)?;
        }
        let macro_id = self.give_catalog_id();
        let macro_type = match definition.kind {
            MacroKind::Scalar => "scalar",
            MacroKind::Table => "table",
        };
        let implementations = definition.implementations.into_iter().zip(0..);
        let value = MacroValue {
            macro_id,
            begin_snapshot: self.snapshot_id(),
            schema_id: schema.schema_id,
            macro_name: definition.name.clone(),
            implementations: implementations
                .map(|(implementation, impl_id)| stored(implementation, impl_id, macro_type))
                .collect(),
            ..MacroValue::default()
        };
        let record = Record::Macro(MacroKey { macro_id }, value);
        self.stage(vec![Change::Insert(record)]).await?;
        let created = Created {
            kind: match definition.kind {
                MacroKind::Scalar => CreatedObject::ScalarMacro,
                MacroKind::Table => CreatedObject::TableMacro,
            },
            schema_id: schema.schema_id,
            name: QualifiedName {
                schema: schema.schema_name,
                name: definition.name,
            },
        };
        self.state.changes.create(macro_id, created, true);
        self.mint_schema();
        Ok(macro_id)
    }

    pub(crate) async fn drop_macro_value(&mut self, found: MacroValue) -> Result<(), VerbError> {
        let macro_id = found.macro_id;
        let kind = Macro::of(found.clone()).kind;
        let ended = self.ended(MacroKey { macro_id }, found);
        self.stage(vec![ended]).await?;
        self.end_tags(macro_id).await?;
        if self.state.changes.created.remove(&macro_id).is_none() {
            let dropped = match kind {
                MacroKind::Scalar => &mut self.state.changes.dropped_scalar_macros,
                MacroKind::Table => &mut self.state.changes.dropped_table_macros,
            };
            dropped.insert(macro_id);
        }
        self.mint_schema();
        Ok(())
    }
}

fn check_parameters(name: &str, implementation: &MacroImplementation) -> Result<(), VerbError> {
    if implementation.sql.trim().is_empty() {
        return Err(VerbError::refused(format!("macro {name} must have a body")));
    }
    for (place, parameter) in implementation.parameters.iter().enumerate() {
        names::check(ObjectKind::Column, &parameter.name)?;
        let mut earlier = implementation.parameters.iter().take(place);
        if earlier.any(|other| same_name(&other.name, &parameter.name)) {
            return Err(VerbError::refused(format!(
                "macro {name} has two parameters {:?}",
                parameter.name
            )));
        }
    }
    Ok(())
}

fn stored(implementation: MacroImplementation, impl_id: u64, macro_type: &str) -> proto::MacroImplementation {
    let parameters = implementation.parameters.into_iter().zip(0..);
    proto::MacroImplementation {
        impl_id,
        dialect: implementation.dialect,
        sql: implementation.sql,
        macro_type: macro_type.to_owned(),
        parameters: parameters
            .map(|(parameter, column_id)| {
                let (default_value, default_value_type) = match parameter.default {
                    Some((text, kind)) => (text, kind.to_string()),
                    None => (NO_DEFAULT.to_owned(), UNKNOWN_TYPE.to_owned()),
                };
                proto::MacroParameter {
                    column_id,
                    parameter_name: parameter.name,
                    parameter_type: parameter
                        .parameter_type
                        .map_or_else(|| UNKNOWN_TYPE.to_owned(), |kind| kind.to_string()),
                    default_value: Some(default_value),
                    default_value_type,
                    ..proto::MacroParameter::default()
                }
            })
            .collect(),
        ..proto::MacroImplementation::default()
    }
}
