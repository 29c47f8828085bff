//! The statistics of a geometry column, in DuckLake's JSON: a box around all values, and which kinds of them there are. A
//! reader prunes by the box, so one that cannot be read must not be made up.

use std::collections::BTreeSet;

use crate::verbs::error::VerbError;

/// The sides of a box, in the order DuckLake writes them; each second one is an upper side.
const SIDES: [&str; 8] = ["xmin", "xmax", "ymin", "ymax", "zmin", "zmax", "mmin", "mmax"];

/// What is known of a column's values.
#[derive(Debug, Clone, PartialEq)]
struct Extent {
    sides: [Option<f64>; 8],
    kinds: BTreeSet<String>,
}

/// Refuses statistics that do not say where the values are.
pub(crate) fn check(extra_stats: Option<&str>) -> Result<(), VerbError> {
    Extent::of(extra_stats).map(|_| ())
}

/// The statistics of both lots of values.
pub(crate) fn merge(left: Option<&str>, right: Option<&str>) -> Result<String, VerbError> {
    let (left, right) = (Extent::of(left)?, Extent::of(right)?);
    let mut merged = left.clone();
    for (at, side) in merged.sides.iter_mut().enumerate() {
        let (a, b) = (
            left.sides.get(at).copied().flatten(),
            right.sides.get(at).copied().flatten(),
        );
        *side = match (a, b) {
            (Some(a), Some(b)) if at % 2 == 0 => Some(a.min(b)),
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
    }
    merged.kinds.extend(right.kinds);
    Ok(merged.text())
}

impl Extent {
    fn of(extra_stats: Option<&str>) -> Result<Self, VerbError> {
        let parsed = extra_stats.and_then(Extent::parse);
        parsed.ok_or_else(|| {
            VerbError::refused(format!(
                "extra_stats of a geometry column must be DuckLake's JSON of a bounding box and types, not {}; without it \
                 readers would miss rows",
                extra_stats.unwrap_or("absent")
            ))
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let mut sides = [None; 8];
        let mut any = false;
        for (name, side) in SIDES.iter().zip(&mut sides) {
            let (_, after) = text.split_once(&format!("\"{name}\""))?;
            let value = after.trim_start().strip_prefix(':')?.trim_start();
            let end = value.find([',', '}'])?;
            let value = value.get(..end)?.trim();
            if value != "null" {
                *side = Some(value.parse().ok()?);
                any = true;
            }
        }
        let (_, after) = text.split_once("\"types\"")?;
        let list = after
            .trim_start()
            .strip_prefix(':')?
            .trim_start()
            .strip_prefix('[')?;
        let (list, _) = list.split_once(']')?;
        let kinds = list.split(',').map(|kind| kind.trim().trim_matches('"'));
        let kinds = kinds.filter(|kind| !kind.is_empty()).map(str::to_owned).collect();
        any.then_some(Extent { sides, kinds })
    }

    fn text(&self) -> String {
        let side = |(name, side): (&&str, &Option<f64>)| match side {
            Some(value) => format!("\"{name}\": {value:.6}"),
            None => format!("\"{name}\": null"),
        };
        let sides: Vec<String> = SIDES.iter().zip(&self.sides).map(side).collect();
        let kinds: Vec<String> = self.kinds.iter().map(|kind| format!("\"{kind}\"")).collect();
        format!(
            "{{\"bbox\": {{{}}}, \"types\": [{}]}}",
            sides.join(", "),
            kinds.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{check, merge};

    const A: &str = r#"{"bbox": {"xmin": 1.000000, "xmax": 2.000000, "ymin": 3.000000, "ymax": 4.000000, "zmin": null, "zmax": null, "mmin": null, "mmax": null}, "types": ["point"]}"#;
    const B: &str = r#"{"bbox": {"xmin": 0.500000, "xmax": 1.000000, "ymin": 3.500000, "ymax": 9.000000, "zmin": null, "zmax": null, "mmin": null, "mmax": null}, "types": ["linestring"]}"#;

    #[test]
    fn boxes_grow_around_all_values() {
        let merged = merge(Some(A), Some(B)).ok();
        let expected = r#"{"bbox": {"xmin": 0.500000, "xmax": 2.000000, "ymin": 3.000000, "ymax": 9.000000, "zmin": null, "zmax": null, "mmin": null, "mmax": null}, "types": ["linestring", "point"]}"#;
        assert_eq!(merged.as_deref(), Some(expected));
    }

    #[test]
    fn a_box_that_is_not_given_is_refused() {
        assert!(check(Some(A)).is_ok());
        assert!(check(None).is_err());
        assert!(check(Some("{}")).is_err());
    }
}
