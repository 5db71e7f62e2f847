// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The rate of data on a link of PCI Express. The rate depends on the speed and the width of the link, and on the size
//! of the packets, because each packet has a header.

/// The bytes of a packet that are no data: the framing with the sequence number, a header of 16 bytes for a write to an
/// address of 64 bits, and the checksum. An answer to a read request has a header of 12 bytes, but it often has less
/// data than `MaxPayload` allows.
const AROUND: f64 = 24.0;
/// The bytes of a packet in a flit that are no data, because the flit has the framing and the checksum.
const HEADER: f64 = 16.0;
/// The share of a flit that packets fill: 236 of 256 bytes. The other bytes are for the link, and for finding and
/// mending errors.
const FLIT: f64 = 236.0 / 256.0;
/// Links up to 5 GT/s send 8 bits as 10 bits, and links up to 32 GT/s send 128 bits as 130 bits. Faster links send
/// flits.
const SLOW: f64 = 5.0;
const WITHOUT_FLITS: f64 = 32.0;
/// The largest `MaxPayload` that servers use. It counts if the setting cannot be read, so that the rate is still a
/// bound.
const LARGEST: u32 = 512;

/// Returns the most bytes of data per second in one direction. The speed is in GT/s. Returns None for a link whose
/// speed or width is not known.
pub fn data_rate(speed: f64, width: f64, payload: Option<u32>) -> Option<f64> {
    if speed <= 0.0 || width <= 0.0 {
        return None;
    }
    let data = f64::from(payload.unwrap_or(LARGEST));
    let (code, around) = if speed <= SLOW {
        (8.0 / 10.0, AROUND)
    } else if speed <= WITHOUT_FLITS {
        (128.0 / 130.0, AROUND)
    } else {
        (FLIT, HEADER)
    };
    Some(speed * 1e9 * width / 8.0 * code * data / (data + around))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_have_the_rate_of_their_data() {
        // The expected gigabytes per second were computed by hand: 8 GT/s x8 are 64 Gb/s, or 8 GB/s, of which 128/130
        // are bytes of packets, 7.877 GB/s, and 256 of 280 bytes of each packet are data, 7.202 GB/s.
        for (speed, width, payload, rate) in [
            (2.5, 16.0, 128, "3.368"),
            (5.0, 16.0, 256, "7.314"),
            (8.0, 8.0, 128, "6.633"),
            (8.0, 8.0, 256, "7.202"),
            (8.0, 8.0, 512, "7.524"),
            (16.0, 16.0, 256, "28.807"),
            (32.0, 16.0, 128, "53.066"),
            (32.0, 16.0, 256, "57.614"),
            (32.0, 16.0, 512, "60.194"),
            // 128 GB/s, of which 236/256 are bytes of packets, 118 GB/s, and 256 of 272 bytes of a packet are data.
            (64.0, 16.0, 256, "111.059"),
        ] {
            let found = data_rate(speed, width, Some(payload)).unwrap();
            assert_eq!(format!("{:.3}", found / 1e9), rate, "{speed} x{width}, {payload}");
        }
    }

    #[test]
    fn an_unknown_payload_is_the_largest_and_an_unknown_link_has_no_rate() {
        assert_eq!(data_rate(8.0, 8.0, None), data_rate(8.0, 8.0, Some(512)));
        assert!(data_rate(0.0, 16.0, Some(256)).is_none() && data_rate(8.0, 0.0, Some(256)).is_none());
    }
}
