// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Calls libnvidia-ml, the driver's own library, for the bytes that a GPU has sent and received over its PCI link.
use std::ffi::{CString, c_char, c_int, c_longlong, c_uint, c_void};
use std::ptr::null_mut;

use crate::verbs::{function, load};

pub const LIBRARY: &str = "libnvidia-ml.so.1";
pub const NOT_SUPPORTED: c_int = 3;
const INVALID_ARGUMENT: c_int = 2;

/// The bytes that the GPU has sent, and those that it has received: `NVML_FI_DEV_PCIE_COUNT_TX_BYTES` and `RX_BYTES`.
/// A driver before 555 does not know these fields.
const FIELDS: [c_uint; 2] = [197, 198];
const COUNT: c_int = 2;
/// The types of a value, of which only whole numbers without a sign can be counters.
const UNSIGNED_INT: c_int = 1;
const UNSIGNED_LONG: c_int = 2;
const UNSIGNED_LONG_LONG: c_int = 3;

/// `nvmlFieldValue_t`. The value is a union, whose members all begin at its first byte.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct FieldValue {
    field: c_uint,
    scope: c_uint,
    timestamp: c_longlong,
    latency: c_longlong,
    kind: c_int,
    code: c_int,
    value: [u8; 8],
}

impl FieldValue {
    fn number(&self) -> Result<u64, c_int> {
        let [first, second, third, fourth, ..] = self.value;
        match (self.code, self.kind) {
            (0, UNSIGNED_INT) => Ok(u32::from_ne_bytes([first, second, third, fourth]).into()),
            (0, UNSIGNED_LONG | UNSIGNED_LONG_LONG) => Ok(u64::from_ne_bytes(self.value)),
            (0, _) => Err(NOT_SUPPORTED),
            (code, _) => Err(code),
        }
    }
}

/// The functions, with the types of their arguments and results as in `<nvml.h>`. Each result is an `nvmlReturn_t`.
struct Functions {
    init: unsafe extern "C" fn() -> c_int,
    device_by_pci: unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_int,
    field_values: unsafe extern "C" fn(*mut c_void, c_int, *mut FieldValue) -> c_int,
}

pub struct Library {
    functions: Functions,
}

/// A GPU that NVML has found.
#[derive(Clone, Copy)]
pub struct Gpu(*mut c_void);

impl Library {
    /// Loads libnvidia-ml. The error is the text of the dynamic linker.
    pub fn open() -> Result<Self, String> {
        let library = load(LIBRARY)?;
        let functions = Functions {
            init: function!(library, "nvmlInit_v2")?,
            device_by_pci: function!(library, "nvmlDeviceGetHandleByPciBusId_v2")?,
            field_values: function!(library, "nvmlDeviceGetFieldValues")?,
        };
        Ok(Self { functions })
    }

    /// Prepares the library. No GPU is asked for that.
    pub fn init(&self) -> Result<(), c_int> {
        // SAFETY: The function requires nothing.
        checked(unsafe { (self.functions.init)() })
    }

    /// Returns the GPU with a PCI address as sysfs has it. NVML initializes this GPU, and no other one.
    pub fn gpu(&self, pci: &str) -> Result<Gpu, c_int> {
        let pci = CString::new(pci).map_err(|_| INVALID_ARGUMENT)?;
        let mut found = null_mut();
        // SAFETY: The text ends with a zero, and there is a place for the GPU.
        checked(unsafe { (self.functions.device_by_pci)(pci.as_ptr(), &raw mut found) })?;
        Ok(Gpu(found))
    }

    /// Returns the bytes that a GPU has sent over its PCI link, and those that it has received. The driver counts in 32
    /// bits, so both begin again after 4 GiB.
    pub fn link_bytes(&self, gpu: Gpu) -> Result<[u64; 2], c_int> {
        let mut values = FIELDS.map(|field| FieldValue { field, ..FieldValue::default() });
        // SAFETY: The GPU is one of this library, which stays loaded, and the array has as many fields as the number says.
        let code = unsafe { (self.functions.field_values)(gpu.0, COUNT, values.as_mut_ptr()) };
        checked(code)?;
        let [sent, received] = values;
        Ok([sent.number()?, received.number()?])
    }
}

fn checked(code: c_int) -> Result<(), c_int> {
    if code == 0 { Ok(()) } else { Err(code) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_has_the_layout_of_the_header() {
        // These are the numbers that a C compiler gives for <nvml.h> of CUDA 12.9.
        assert_eq!(size_of::<FieldValue>(), 40);
        let places = [
            std::mem::offset_of!(FieldValue, scope),
            std::mem::offset_of!(FieldValue, timestamp),
            std::mem::offset_of!(FieldValue, latency),
            std::mem::offset_of!(FieldValue, kind),
            std::mem::offset_of!(FieldValue, code),
            std::mem::offset_of!(FieldValue, value),
        ];
        assert_eq!(places, [4, 8, 16, 24, 28, 32]);
    }

    #[test]
    fn only_whole_numbers_count() {
        let value =
            |kind, code| FieldValue { kind, code, value: ((7_u64 << 32) + 5).to_ne_bytes(), ..Default::default() };
        let low = if cfg!(target_endian = "little") { 5 } else { 7 };
        assert_eq!(value(UNSIGNED_INT, 0).number(), Ok(low));
        assert_eq!(value(UNSIGNED_LONG, 0).number(), Ok((7 << 32) + 5));
        assert_eq!(value(UNSIGNED_LONG_LONG, 0).number(), Ok((7 << 32) + 5));
        assert_eq!(value(0, 0).number(), Err(NOT_SUPPORTED));
        assert_eq!(value(UNSIGNED_INT, INVALID_ARGUMENT).number(), Err(INVALID_ARGUMENT));
    }
}
