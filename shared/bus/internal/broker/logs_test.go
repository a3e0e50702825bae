package broker

import "testing"

// No answer of a broker makes its reader panic or read beyond its bytes.
func FuzzFetchAnswer(f *testing.F) {
	f.Add(make([]byte, 40))
	f.Fuzz(func(t *testing.T, body []byte) { (&Fetch{}).decode(body) })
}
