//! Reading the name of an algorithm.

use ranpace_cc::Algorithm;

use crate::reader::Field;

/// The algorithm that a field names.
pub(crate) fn read_algorithm(field: &Field<'_>) -> Option<Algorithm> {
    let text = field.text("the name of an algorithm, such as \"cubic\"")?;
    match Algorithm::parse(text, &field.report.controls) {
        Ok(algorithm) => Some(algorithm),
        Err(error) => {
            field.error(error.to_string());
            None
        }
    }
}
