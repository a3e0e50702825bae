package frames

import "encoding/binary"

// A Type is the type of a frame.
type Type byte

// The types of RFC 9113, section 6. Others are ignored by receivers.
const (
	Data Type = iota
	Headers
	Priority
	ResetStream
	Settings
	PushPromise
	Ping
	GoAway
	WindowUpdate
	Continuation
)

// Preface is what a client sends before its first frame.
const Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

const (
	headerSize  = 9
	flagPadded  = 0x8
	streamIDs   = 1<<31 - 1
	goAwayBytes = 8 // of its payload, without the debug data
)

// A Header is the header of a frame.
type Header struct {
	Length int // of the payload, in bytes
	Type   Type
	Flags  byte
	Stream uint32
}

// A Scanner finds the frames of one direction of a connection. The zero
// value begins at a frame's first byte.
type Scanner struct {
	header [headerSize]byte
	have   int // bytes of header
	left   int // bytes of the current payload that have not passed
}

// Next returns the next header that ends in p and the bytes after it,
// or false once p is used up; the next call goes on where p ended.
func (s *Scanner) Next(p []byte) (found Header, rest []byte, ok bool) {
	skipped := min(s.left, len(p))
	s.left -= skipped
	p = p[skipped:]
	n := copy(s.header[s.have:], p)
	if s.have += n; s.have < headerSize {
		return Header{}, nil, false
	}
	s.have = 0
	found = Header{
		Length: int(s.header[0])<<16 | int(s.header[1])<<8 | int(s.header[2]),
		Type:   Type(s.header[3]), Flags: s.header[4],
		Stream: binary.BigEndian.Uint32(s.header[5:]) & streamIDs,
	}
	s.left = found.Length
	return found, p[n:], true
}

// Between reports whether the last byte that passed was a frame's last.
func (s *Scanner) Between() bool { return s.have == 0 && s.left == 0 }

// GoAwayCode returns the error code of a GOAWAY frame whose payload
// begins with p; false if p is too short for it.
func GoAwayCode(p []byte) (code uint32, ok bool) {
	if len(p) < goAwayBytes {
		return 0, false
	}
	return binary.BigEndian.Uint32(p[4:]), true
}

// Append appends a frame with this payload, of less than 16 MiB; its
// header's Length is not read.
func Append(p []byte, h Header, payload []byte) []byte {
	p = append(p, byte(len(payload)>>16), byte(len(payload)>>8), byte(len(payload)), byte(h.Type), h.Flags)
	return append(binary.BigEndian.AppendUint32(p, h.Stream), payload...)
}

// AppendGoAway appends a GOAWAY frame: last is the last stream that was
// seen.
func AppendGoAway(p []byte, last, code uint32) []byte {
	payload := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, last), code)
	return Append(p, Header{Type: GoAway}, payload)
}

// Bounds of the payloads of DATA frames, in bytes.
const (
	tinyData  = 64
	smallData = 1 << 10
	padding   = 256 // at most, with its length
)

// costs of frames other than DATA.
var costs = [...]int64{
	Headers:  16, // begins a handler
	Priority: 8, ResetStream: 8, Settings: 8, PushPromise: 8, Ping: 8, GoAway: 8, Continuation: 8,
	WindowUpdate: 2, // readers send two for each frame of an answer
}

const (
	otherCost   = 8
	bytesOfCost = 256 // of a frame other than DATA
)

// Cost returns what a frame from a client costs the server, in units of
// about a microsecond of a processor. Large DATA frames are free: other
// limits count bytes.
func Cost(h Header) int64 {
	if h.Type == Data {
		return costOfData(h)
	}
	cost := int64(otherCost)
	if int(h.Type) < len(costs) {
		cost = costs[h.Type]
	}
	return cost + int64(h.Length/bytesOfCost)
}

func costOfData(h Header) int64 {
	brings := h.Length
	if h.Flags&flagPadded != 0 {
		brings = max(0, brings-padding)
	}
	switch {
	case brings == 0:
		return otherCost
	case brings < tinyData:
		return otherCost / 2
	case brings < smallData:
		return 1
	}
	return 0
}
