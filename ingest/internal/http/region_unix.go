//go:build unix

package http

import "syscall"

// A region is a range of addresses that becomes memory as it is used. A
// large body grows in it without a copy, and its pages are freed at
// once, without the garbage collector.
type region struct {
	addresses []byte
	usable    int
}

// reserve reserves addresses for size bytes without memory.
func reserve(size int) (*region, error) {
	addresses, err := syscall.Mmap(-1, 0, size, syscall.PROT_NONE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	return &region{addresses: addresses}, nil
}

// use makes the first size bytes usable, more than before.
func (r *region) use(size int) error {
	err := syscall.Mprotect(r.addresses[r.usable:size], syscall.PROT_READ|syscall.PROT_WRITE)
	if err == nil {
		r.usable = size
	}
	return err
}

// release unmaps the memory; it must not be used any more.
func (r *region) release() { _ = syscall.Munmap(r.addresses) }
