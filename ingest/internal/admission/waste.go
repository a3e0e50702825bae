package admission

import (
	"time"

	"github.com/weirlog/weir/shared/fairshare"
)

// A WasteLimit bounds the bytes that were read, decompressed and
// validated with nothing accepted, which cost the service and not their
// sender. After Bytes a sender waits until PerSecond have refilled
// some. The zero value limits nothing.
type WasteLimit struct {
	Bytes     int64
	PerSecond int64
}

func (l WasteLimit) limits() bool { return l.Bytes > 0 && l.PerSecond > 0 }

func (l WasteLimit) wait(bucket *fairshare.Bucket, now int64) time.Duration {
	if !l.limits() {
		return 0
	}
	return bucket.Wait(now, l.Bytes, l.PerSecond)
}

func (l WasteLimit) spend(bucket *fairshare.Bucket, now, bytes int64) {
	if l.limits() {
		bucket.Spend(now, bytes, l.PerSecond)
	}
}
