package bus

import "encoding/binary"

// appendHead begins a request in the flexible form that newer versions have; its size, the first four bytes, is put in by sized.
func appendHead(b []byte, key, version int16, clientID string) []byte {
	b = append(b, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = binary.BigEndian.AppendUint32(b, 0) // correlation: there is one request at a time
	b = appendString(b, clientID)
	return append(b, noTags)
}

// sized puts the size of a whole request into its first four bytes.
func sized(b []byte) []byte {
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// noTags is the end of every structure in the flexible form: no tagged fields follow.
const noTags = 0

func appendString(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(s)))
	return append(b, s...)
}

// appendCompactString writes a string in the flexible form.
func appendCompactString(b []byte, s string) []byte {
	return append(appendCompactLength(b, len(s)), s...)
}

// appendCompactLength writes the length of a string or an array in the flexible form, where 0 means null.
func appendCompactLength(b []byte, n int) []byte { return binary.AppendUvarint(b, uint64(n)+1) }

// appendNullable writes b after its length; null is length -1.
func appendNullable[B ~string | ~[]byte](dst []byte, b B, null bool) []byte {
	if null {
		return binary.AppendVarint(dst, -1)
	}
	dst = binary.AppendVarint(dst, int64(len(b)))
	return append(dst, b...)
}

// topicID is what a topic has for itself alone: another one that is made under the same name has another id.
type topicID [16]byte

// scanner reads Kafka's primitive types. Once it runs out of bytes it is bad and returns zeros.
type scanner struct {
	rest []byte
	bad  bool
}

// bytes returns the next n bytes, nil for a negative n.
func (r *scanner) bytes(n int) []byte {
	if n < 0 {
		return nil
	}
	if n > len(r.rest) {
		r.bad, r.rest = true, nil
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// items returns how many items follow, each of at least so many bytes. A number that cannot be is bad and returned as 0.
func (r *scanner) items(least int) int {
	n := int(r.int32())
	if n > len(r.rest)/least {
		r.bad, n = true, 0
	}
	return max(n, 0)
}

func (r *scanner) int16() int16 {
	if b := r.bytes(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (r *scanner) int32() int32 {
	if b := r.bytes(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *scanner) int64() int64 {
	if b := r.bytes(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (r *scanner) varint() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// count returns how many things follow, each of at least a byte. A number that cannot be is bad and returned as 0.
func (r *scanner) count() int {
	n := r.varint()
	if n < 0 || n > int64(len(r.rest)) {
		r.bad, n = true, 0
	}
	return int(n)
}

func (r *scanner) uvarint() int {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || v > 1<<31-1 {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return int(v)
}

// compact returns a string or a byte sequence in the flexible form, nil for null.
func (r *scanner) compact() []byte { return r.bytes(r.uvarint() - 1) }

// compactItems is items in the flexible form.
func (r *scanner) compactItems(least int) int {
	n := r.uvarint() - 1
	if n > len(r.rest)/least {
		r.bad, n = true, 0
	}
	return max(n, 0)
}

// tags passes the tagged fields by.
func (r *scanner) tags() {
	for range r.uvarint() {
		r.uvarint()
		r.bytes(r.uvarint())
		if r.bad {
			return
		}
	}
}

func (r *scanner) topicID() (id topicID) {
	copy(id[:], r.bytes(len(id)))
	return id
}
