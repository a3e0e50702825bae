package wire

import "encoding/binary"

// AppendHead begins a request in the flexible form of newer versions;
// Sized sets its size, the first four bytes.
func AppendHead(b []byte, key, version int16, clientID string) []byte {
	b = append(b, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = binary.BigEndian.AppendUint32(b, 0) // correlation: one request at a time
	b = AppendString(b, clientID)
	return append(b, NoTags)
}

// Sized writes the size of a whole request into its first four bytes.
func Sized(b []byte) []byte {
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// NoTags ends every structure in the flexible form: no tagged fields follow.
const NoTags = 0

func AppendString(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(s)))
	return append(b, s...)
}

// AppendCompactString writes a string in the flexible form.
func AppendCompactString(b []byte, s string) []byte {
	return append(AppendCompactLength(b, len(s)), s...)
}

// AppendCompactLength writes the length of a string or an array in
// the flexible form, where 0 means null.
func AppendCompactLength(b []byte, n int) []byte { return binary.AppendUvarint(b, uint64(n)+1) }

// AppendNullable writes b after its length; null is length -1.
func AppendNullable[B ~string | ~[]byte](dst []byte, b B, null bool) []byte {
	if null {
		return binary.AppendVarint(dst, -1)
	}
	dst = binary.AppendVarint(dst, int64(len(b)))
	return append(dst, b...)
}

// TopicID identifies a topic, also among topics of the same name.
type TopicID [16]byte

// Scanner reads Kafka's primitive types. Once it runs out of bytes it
// is bad and returns zeros.
type Scanner struct {
	Rest []byte
	Bad  bool
}

// Bytes returns the next n bytes, nil for a negative n.
func (r *Scanner) Bytes(n int) []byte {
	if n < 0 {
		return nil
	}
	if n > len(r.Rest) {
		r.Bad, r.Rest = true, nil
		return nil
	}
	b := r.Rest[:n:n]
	r.Rest = r.Rest[n:]
	return b
}

// Items returns how many items follow, each of at least so many bytes.
// An impossible number makes it bad and returns 0.
func (r *Scanner) Items(least int) int {
	n := int(r.Int32())
	if n > len(r.Rest)/least {
		r.Bad, n = true, 0
	}
	return max(n, 0)
}

func (r *Scanner) Int16() int16 {
	if b := r.Bytes(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (r *Scanner) Int32() int32 {
	if b := r.Bytes(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *Scanner) Int64() int64 {
	if b := r.Bytes(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (r *Scanner) Varint() int64 {
	v, n := binary.Varint(r.Rest)
	if n <= 0 {
		r.Bad, r.Rest = true, nil
		return 0
	}
	r.Rest = r.Rest[n:]
	return v
}

// Count returns how many items follow, each of at least a byte. An
// impossible number makes it bad and returns 0.
func (r *Scanner) Count() int {
	n := r.Varint()
	if n < 0 || n > int64(len(r.Rest)) {
		r.Bad, n = true, 0
	}
	return int(n)
}

func (r *Scanner) uvarint() int {
	v, n := binary.Uvarint(r.Rest)
	if n <= 0 || v > 1<<31-1 {
		r.Bad, r.Rest = true, nil
		return 0
	}
	r.Rest = r.Rest[n:]
	return int(v)
}

// Compact returns a string or a byte sequence in the flexible form,
// nil for null.
func (r *Scanner) Compact() []byte { return r.Bytes(r.uvarint() - 1) }

// CompactItems is Items in the flexible form.
func (r *Scanner) CompactItems(least int) int {
	n := r.uvarint() - 1
	if n > len(r.Rest)/least {
		r.Bad, n = true, 0
	}
	return max(n, 0)
}

// Tags skips the tagged fields.
func (r *Scanner) Tags() {
	for range r.uvarint() {
		r.uvarint()
		r.Bytes(r.uvarint())
		if r.Bad {
			return
		}
	}
}

func (r *Scanner) TopicID() (id TopicID) {
	copy(id[:], r.Bytes(len(id)))
	return id
}
