// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tests of what the RDMA core sees of a client, and of a claim that there was no memory for.

use core::{
    mem::{
        offset_of,
        size_of, //
    },
    ptr::null_mut,
    slice, //
};

use super::*;
use crate::client::{
    Persistent,
    Revocable, //
};

/// What comes behind the fields that every core knows: pointers to functions in a legacy core.
fn tail(client: &abi::nvpm_client) -> &[u8] {
    let known = offset_of!(abi::peer_memory_client, release) + size_of::<usize>();
    // SAFETY: The structure has fields only, no padding.
    let bytes = unsafe {
        slice::from_raw_parts(
            (&raw const *client).cast::<u8>(),
            size_of::<abi::nvpm_client>(),
        )
    };
    &bytes[known..]
}

/// The byte that says that there is something in the tail.
fn flag(client: &abi::nvpm_client) -> Option<&c_char> {
    client.client.version.last()
}

fn text(field: &[c_char]) -> impl Iterator<Item = u8> + '_ {
    field.iter().copied().take_while(|byte| *byte != 0)
}

#[kernel::macros::kunit_tests(nv_peer_mem_peer)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_its_name_and_the_modules_version() {
        let client = client::<Persistent>("nv_mem", Core::Current);
        assert!(text(&client.client.name).eq("nv_mem".bytes()));
        assert!(text(&client.client.version).eq(env!("NVPM_VERSION").bytes()));
    }

    #[test]
    fn a_string_leaves_the_last_two_bytes_alone() {
        let mut field: [c_char; 8] = [0; 8];
        fill(&mut field, "longer than that");
        assert!(text(&field).eq("longer".bytes()));
        assert_eq!(field[6..], [0, 0]);
    }

    #[test]
    fn a_legacy_core_finds_zeros_behind_what_it_knows() {
        let client = client::<Revocable>("nv_mem", Core::Legacy);
        assert!(tail(&client).iter().all(|byte| *byte == 0));
        assert_eq!(flag(&client), Some(&0));
    }

    #[test]
    fn the_flag_says_whether_a_current_core_finds_more() {
        let client = client::<Revocable>("nv_mem", Core::Current);
        let more = tail(&client).iter().any(|byte| *byte != 0);
        assert_eq!(flag(&client), Some(&c_char::from(more)));
    }

    #[test]
    fn a_claim_without_memory_says_so_and_ends() {
        let mut table = abi::sg_table::default();
        let mut mapped = 0;
        // SAFETY: `acquire` gives this context; the device is NULL, the others are valid for
        // writing.
        unsafe {
            let got = get_pages(0, 0, 0, 0, &mut table, no_memory(), 0);
            let mapping = dma_map(&mut table, no_memory(), null_mut(), 0, &mut mapped);
            release(no_memory());
            assert_eq!(got, Errno::NOMEM.to_c());
            assert_eq!(mapping, Errno::NOMEM.to_c());
        }
        assert!(table.sgl.is_null());
    }
}
