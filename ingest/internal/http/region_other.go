//go:build !unix

package http

// A region is memory for a large body. Without mmap it is on the
// garbage-collected heap, and whole from the beginning.
type region struct {
	addresses []byte
	usable    int
}

func reserve(size int) (*region, error) { return &region{addresses: make([]byte, size)}, nil }

func (r *region) use(size int) error {
	r.usable = size
	return nil
}

func (r *region) release() { r.addresses = nil }
