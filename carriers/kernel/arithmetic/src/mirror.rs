//! Structures of C in Rust, with a test that both have the same fields in the same places.

/// A field as C sees it (`struct field` of `native/layout.h`); at the end of a list, the size of the whole and no name.
#[cfg(test)]
#[repr(C)]
pub(crate) struct CField {
    name: *const core::ffi::c_char,
    offset: usize,
    size: usize,
}

/// What C's list says, as `name offset size`.
///
/// # Safety
///
/// `first` begins a list that an entry without a name ends, as `END` of `native/layout.h` makes it.
#[cfg(test)]
pub(crate) unsafe fn read_layout(mut first: *const CField) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        // SAFETY: the list goes on until an entry without a name, which ends this loop.
        let field = unsafe { &*first };
        if field.name.is_null() {
            lines.push(format!("in all {}", field.offset));
            return lines;
        }
        // SAFETY: a name is a string literal of C.
        let name = unsafe { core::ffi::CStr::from_ptr(field.name) }.to_string_lossy();
        lines.push(format!("{name} {} {}", field.offset, field.size));
        // SAFETY: this was not the last entry.
        first = unsafe { first.add(1) };
    }
}

/// Declares a structure of C. The name in brackets is that of C's list of its fields (`native/X.c`); a test compares both.
macro_rules! mirror {
    ($(#[$meta:meta])* pub struct $name:ident [$layout:ident] {
        $($(#[$field_meta:meta])* $visible:vis $field:ident: $type:ty,)*
    }) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_meta])* $visible $field: $type,)*
        }

        impl $name {
            /// Bytes of its fields: as many as it has, unless there is padding.
            pub const BYTES_OF_FIELDS: usize = 0 $(+ size_of::<$type>())*;
        }

        #[cfg(test)]
        mod $layout {
            unsafe extern "C" {
                static $layout: $crate::mirror::CField;
            }

            #[test]
            fn is_that_of_c() {
                type Mirror = super::$name;
                const fn size_of_field<T>(_: fn(&Mirror) -> &T) -> usize {
                    size_of::<T>()
                }
                let mut lines = Vec::new();
                $(
                    let size = size_of_field(|mirror: &Mirror| &mirror.$field);
                    lines.push(format!("{} {} {size}", stringify!($field), core::mem::offset_of!(Mirror, $field)));
                )*
                lines.push(format!("in all {}", size_of::<Mirror>()));
                // SAFETY: C's list, ended by END.
                assert_eq!(lines, unsafe { $crate::mirror::read_layout(&raw const $layout) });
            }
        }
    };
}

/// Declares that a structure, with those named behind it that it is made of, is [`Flat`](crate::engine::Flat).
macro_rules! flat {
    ($name:ident: $($part:ty),* $(,)?) => {
        const _: () = {
            assert!($name::BYTES_OF_FIELDS == size_of::<$name>());
            $(assert!(<$part>::BYTES_OF_FIELDS == size_of::<$part>());)*
        };

        // SAFETY: it is `#[repr(C)]`, without padding as was just asserted, and of numbers alone.
        unsafe impl $crate::engine::Flat for $name {}
    };
}
