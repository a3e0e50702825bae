package compression

import (
	"sync"

	"github.com/klauspost/compress/zstd"
)

// A Codec packs and unpacks texts, several at once. Coders hold their
// last text, which may be deleted since: the second garbage collection
// frees idle ones, and Go collects at least every two minutes.
type Codec struct{ encoders, decoders sync.Pool }

// New returns a codec that unpacks texts of at most maxUnpacked bytes.
func New(maxUnpacked uint64) *Codec {
	c := &Codec{}
	c.encoders.New = func() any { return newEncoder() }
	c.decoders.New = func() any { return newDecoder(maxUnpacked) }
	return c
}

func newEncoder() *zstd.Encoder {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic("BUG: cannot make an encoder: " + err.Error())
	}
	return encoder
}

func newDecoder(most uint64) *zstd.Decoder {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(most))
	if err != nil {
		panic("BUG: cannot make a decoder: " + err.Error())
	}
	return decoder
}

// Pack packs a text.
func (c *Codec) Pack(text []byte) []byte {
	encoder := c.encoders.Get().(*zstd.Encoder)
	defer c.encoders.Put(encoder)
	return encoder.EncodeAll(text, nil)
}

// Unpack unpacks a text, into buffer if it fits.
func (c *Codec) Unpack(packed, buffer []byte) ([]byte, error) {
	decoder := c.decoders.Get().(*zstd.Decoder)
	defer c.decoders.Put(decoder)
	return decoder.DecodeAll(packed, buffer[:0])
}
