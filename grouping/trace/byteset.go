package trace

// byteSet is a set of ASCII characters. Package strings builds one in
// each call of Trim or IndexAny, which costs more than the search.
type byteSet [256]bool

func bytesOf(s string) *byteSet {
	var set byteSet
	for i := range len(s) {
		set[s[i]] = true
	}
	return &set
}

// trim is strings.Trim.
func (b *byteSet) trim(s string) string {
	s = b.trimLeft(s)
	for s != "" && b[s[len(s)-1]] {
		s = s[:len(s)-1]
	}
	return s
}

// trimLeft is strings.TrimLeft.
func (b *byteSet) trimLeft(s string) string {
	for s != "" && b[s[0]] {
		s = s[1:]
	}
	return s
}

// occursIn is strings.ContainsAny.
func (b *byteSet) occursIn(s string) bool {
	for i := range len(s) {
		if b[s[i]] {
			return true
		}
	}
	return false
}

// afterLast is what follows the last byte
// of the set in s; all of s without one.
func afterLast[text string | []byte](b *byteSet, s text) text {
	for i := len(s) - 1; i >= 0; i-- {
		if b[s[i]] {
			return s[i+1:]
		}
	}
	return s
}

// charSet is a set of bytes. Two are compared at once.
type charSet [4]uint64

func charsOf(s string) (set charSet) {
	for i := range len(s) {
		set[s[i]>>6] |= 1 << (s[i] & 63)
	}
	return set
}

// intersects reports whether two sets have a byte in common.
func (c charSet) intersects(d charSet) bool {
	return c[0]&d[0]|c[1]&d[1]|c[2]&d[2]|c[3]&d[3] != 0
}

// within reports whether all bytes of the set are in another.
func (c charSet) within(d charSet) bool {
	return c[0]&^d[0]|c[1]&^d[1]|c[2]&^d[2]|c[3]&^d[3] == 0
}
