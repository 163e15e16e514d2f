//! Writes messages by hand, for tests; the meaning of fields is not known here.

/// A varint.
pub(super) fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A field that is a number.
pub(super) fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

/// A field that is a message, or text.
pub(super) fn message(field: u64, bytes: &[u8]) -> Vec<u8> {
    [
        &varint(field << 3 | 2)[..],
        &varint(bytes.len() as u64),
        bytes,
    ]
    .concat()
}

/// A field of packed numbers.
pub(super) fn packed(field: u64, values: &[u64]) -> Vec<u8> {
    let values: Vec<u8> = values.iter().flat_map(|value| varint(*value)).collect();
    message(field, &values)
}

/// A file of these packets.
pub(super) fn file(packets: &[Vec<u8>]) -> Vec<u8> {
    packets
        .iter()
        .flat_map(|packet| message(1, packet))
        .collect()
}
