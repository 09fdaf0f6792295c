//! Reading the name of an algorithm.

use ranpace_cc::{Algorithm, AlgorithmError};

use crate::reader::Field;

/// The algorithm that a field names.
pub(crate) fn read_algorithm(field: &Field<'_>) -> Option<Algorithm> {
    match field.text("the name of an algorithm, such as \"cubic\"")?.parse() {
        Ok(algorithm) => Some(algorithm),
        Err(error) => {
            let error: AlgorithmError = error;
            field.error(error.to_string());
            None
        }
    }
}
