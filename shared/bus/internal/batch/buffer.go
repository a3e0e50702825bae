package batch

import "sync"

// Buffers are pooled by size class, so that a quiet partition does not
// hold a busy one's memory.
var bufferPools = [...]struct {
	size int
	pool *sync.Pool
}{
	{4 << 10, &sync.Pool{}}, {64 << 10, &sync.Pool{}}, {256 << 10, &sync.Pool{}}, {1 << 20, &sync.Pool{}},
}

// TakeBuffer returns an empty buffer with room for at least n bytes.
func TakeBuffer(n int) []byte {
	for i := range bufferPools {
		class := &bufferPools[i]
		if n > class.size {
			continue
		}
		if held, _ := class.pool.Get().(*[]byte); held != nil {
			return (*held)[:0]
		}
		return make([]byte, 0, class.size)
	}
	return make([]byte, 0, n)
}

// GiveBuffer returns an unused buffer to its pool.
func GiveBuffer(b []byte) {
	for i := range bufferPools {
		if cap(b) == bufferPools[i].size {
			b = b[:0]
			bufferPools[i].pool.Put(&b)
			return
		}
	}
}

// growBuffer makes room for n more bytes, in a larger class if needed.
func growBuffer(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	larger := append(TakeBuffer(len(b)+n), b...)
	GiveBuffer(b)
	return larger
}
