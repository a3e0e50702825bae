package compression

import (
	"bytes"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// A packed text unpacks to the same, in the given memory; a text that
// is too large does not.
func TestCodec(t *testing.T) {
	codec, text, buffer := New(1<<20), bytes.Repeat([]byte("checkout failed\n"), 1000), make([]byte, 0, 1<<20)
	packed := codec.Pack(text)
	if len(packed) > len(text)/10 {
		t.Errorf("%d bytes are packed to %d", len(text), len(packed))
	}
	if got, err := codec.Unpack(packed, buffer); err != nil || !bytes.Equal(got, text) || &got[0] != &buffer[:1][0] {
		t.Errorf("unpacked %d bytes: %v", len(got), err)
	}
	if got, err := codec.Unpack(codec.Pack(make([]byte, 1<<20+1)), nil); err == nil {
		t.Errorf("unpacked %d bytes", len(got))
	}
}

// Idle coders are freed: they hold their last text.
func TestIdleCodersAreFreed(t *testing.T) {
	codec := New(1 << 20)
	var gone atomic.Int32
	for range 2 {
		encoder, decoder := codec.encoders.Get().(*zstd.Encoder), codec.decoders.Get().(*zstd.Decoder)
		runtime.AddCleanup(encoder, func(n *atomic.Int32) { n.Add(1) }, &gone)
		runtime.AddCleanup(decoder, func(n *atomic.Int32) { n.Add(1) }, &gone)
		encoder.EncodeAll([]byte("secret"), nil)
		codec.encoders.Put(encoder)
		codec.decoders.Put(decoder)
	}
	for range 100 {
		if runtime.GC(); gone.Load() >= 2 {
			break
		}
		runtime.Gosched()
	}
	if gone.Load() < 2 {
		t.Errorf("%d coders were let go", gone.Load())
	}
	runtime.KeepAlive(codec)
}
