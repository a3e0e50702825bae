package objects

import (
	"context"
	"fmt"
	"net/url"
)

// A Store keeps objects by names, which are never used twice. It is safe
// for concurrent use.
type Store interface {
	// Put stores an object: whole and for good, or with an error.
	Put(ctx context.Context, name string, body []byte) error
	// GetRange returns length bytes of an object, from an offset on. It is
	// an error where the object has fewer, or is not there.
	GetRange(ctx context.Context, name string, from, length int64) ([]byte, error)
	// Delete deletes an object; it succeeds where there is none.
	Delete(ctx context.Context, name string) error
}

// Open opens the store at an address: file:///var/lib/weir/archive, or
// s3://bucket/prefix?endpoint=https://s3.example:9000&region=eu-1. It
// reaches a bucket only when it is used.
func Open(address string) (Store, error) {
	at, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("%q is no address: %w", address, err)
	}
	switch {
	case at.Scheme == "file" && at.Host == "" && at.Path != "":
		return openFolder(at.Path)
	case at.Scheme == "s3" && at.Host != "":
		return openBucket(at)
	}
	return nil, fmt.Errorf("%q names no storage: use file:///a/folder, or s3://bucket/prefix?endpoint=https://host&region=name", address)
}
