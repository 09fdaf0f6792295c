//! Where the variables of a section of an object lie: read from the object's own type information (BTF).

use libbpf_rs::btf::types::{Array, Composite, DataSec, Int, MemberAttr, Struct, Var};
use libbpf_rs::btf::{Btf, BtfType, HasSize as _, ReferencesType as _, TypeId};

use crate::error::KernelError;

/// The variables of one section; members of structures as `variable.member`.
#[derive(Clone, Debug)]
pub struct Layout {
    fields: Vec<Field>,
    size: usize,
}

#[derive(Clone, Debug)]
struct Field {
    name: String,
    offset: usize,
    size: usize,
}

impl Layout {
    /// Reads it; `section` as in `SEC(".data.settings")`.
    pub fn of(object: &[u8], section: &str) -> Result<Self, KernelError> {
        let missing = || KernelError::Missing(format!("section {section}"));
        let btf = Btf::from_raw("layout", object)
            .map_err(|error| KernelError::bpf("read an object", error))?
            .ok_or_else(missing)?;
        let section: DataSec<'_> = btf.type_by_name(section).ok_or_else(missing)?;
        let mut layout = Self { fields: Vec::new(), size: 0 };
        for variable in section.iter() {
            let var: Var<'_> = btf.type_by_id(variable.ty).ok_or_else(missing)?;
            let (offset, size) = (variable.offset as usize, variable.size);
            layout.size = layout.size.max(offset + size);
            let name = var.name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            layout.add(&btf, name, var.referenced_type().type_id(), offset, size);
        }
        Ok(layout)
    }

    /// A variable, or a member of one; structures by their members.
    fn add(&mut self, btf: &Btf<'_>, name: String, ty: TypeId, offset: usize, size: usize) {
        let Some(members) = btf
            .type_by_id::<BtfType<'_>>(ty)
            .and_then(|ty| Struct::try_from(ty.skip_mods_and_typedefs()).ok())
            .map(Composite::from)
        else {
            return self.fields.push(Field { name, offset, size });
        };
        for member in members.iter() {
            if let (MemberAttr::Normal { offset: bits }, Some(inner)) = (member.attr, member.name) {
                let name = format!("{name}.{}", inner.to_string_lossy());
                self.add(btf, name, member.ty, offset + bits as usize / 8, size_of(btf, member.ty));
            }
        }
    }

    /// Bytes of the section.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Tells layouts apart.
    pub fn id(&self) -> u64 {
        // FNV-1a, 32 bits: what is compared was written by another build of this very program.
        let text: String =
            self.fields.iter().map(|f| format!("{}:{}:{};", f.name, f.offset, f.size)).collect();
        u64::from(
            text.bytes()
                .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)),
        )
    }

    fn field(&self, name: &str) -> Result<&Field, KernelError> {
        self.fields
            .iter()
            .find(|field| field.name == name)
            .ok_or_else(|| KernelError::Missing(format!("variable {name}")))
    }

    /// Writes an unsigned number in the machine's byte order.
    pub fn write(&self, bytes: &mut [u8], name: &str, value: u64) -> Result<(), KernelError> {
        let field = self.field(name)?;
        let too_large = || KernelError::Missing(format!("room for {value} in variable {name}"));
        let place = bytes.get_mut(field.offset..field.offset + field.size).ok_or_else(too_large)?;
        match field.size {
            1 => place.copy_from_slice(&u8::try_from(value).map_err(|_| too_large())?.to_ne_bytes()),
            4 => place.copy_from_slice(&u32::try_from(value).map_err(|_| too_large())?.to_ne_bytes()),
            8 => place.copy_from_slice(&value.to_ne_bytes()),
            _ => return Err(too_large()),
        }
        Ok(())
    }

    /// Reads an unsigned number.
    pub fn read(&self, bytes: &[u8], name: &str) -> Result<u64, KernelError> {
        let field = self.field(name)?;
        let place = bytes.get(field.offset..field.offset + field.size).unwrap_or_default();
        Ok(place
            .iter()
            .enumerate()
            .fold(0, |value, (i, &byte)| value | u64::from(byte) << (8 * shift(i, place.len()))))
    }

    /// The bytes of a variable.
    pub fn bytes<'a>(&self, bytes: &'a mut [u8], name: &str) -> Result<&'a mut [u8], KernelError> {
        let field = self.field(name)?;
        bytes
            .get_mut(field.offset..field.offset + field.size)
            .ok_or_else(|| KernelError::Missing(format!("variable {name}")))
    }
}

/// Place of byte `i` of `of` in a number of the machine's byte order.
fn shift(i: usize, of: usize) -> usize {
    if cfg!(target_endian = "little") { i } else { of - 1 - i }
}

/// Bytes of a type; arrays are counted by their elements.
fn size_of(btf: &Btf<'_>, ty: TypeId) -> usize {
    let Some(ty) = btf.type_by_id::<BtfType<'_>>(ty) else { return 0 };
    let ty = ty.skip_mods_and_typedefs();
    if let Ok(array) = Array::try_from(ty) {
        return array.capacity() * size_of(btf, array.contained_type().type_id());
    }
    Int::try_from(ty).map_or(0, |int| int.size())
}
