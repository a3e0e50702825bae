//go:build !unix

package http

// A region is memory for a large body. Where the system has no mmap it is the garbage collector's, and all of it is there
// from the beginning.
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
