package compression

import (
	"sync"

	"github.com/klauspost/compress/zstd"
)

// A Packer packs texts, several at once. Coders hold their last text,
// which may be deleted since: the second garbage collection frees idle
// ones, and Go collects at least every two minutes.
type Packer struct{ encoders sync.Pool }

// window is how far back a packer looks for what repeats, in bytes: most
// texts are smaller. By default, each encoder would hold 8 MB.
const window = 1 << 20

// NewPacker returns a packer of the fastest level, unless an option says otherwise.
func NewPacker(options ...zstd.EOption) *Packer {
	p := &Packer{}
	p.encoders.New = func() any { return newEncoder(options) }
	return p
}

// A Codec packs and unpacks texts, as a Packer does.
type Codec struct {
	*Packer
	decoders sync.Pool
}

// New returns a codec that unpacks texts of at most maxUnpacked bytes.
func New(maxUnpacked uint64) *Codec {
	c := &Codec{Packer: NewPacker()}
	c.decoders.New = func() any { return newDecoder(maxUnpacked) }
	return c
}

func newEncoder(options []zstd.EOption) *zstd.Encoder {
	encoder, err := zstd.NewWriter(nil, append([]zstd.EOption{
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(true),
	}, options...)...)
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
func (p *Packer) Pack(text []byte) []byte { return p.Append(nil, text) }

// Append appends the packed text to dst.
func (p *Packer) Append(dst, text []byte) []byte {
	encoder := p.encoders.Get().(*zstd.Encoder)
	defer p.encoders.Put(encoder)
	return encoder.EncodeAll(text, dst)
}

// Unpack unpacks a text, into buffer if it fits.
func (c *Codec) Unpack(packed, buffer []byte) ([]byte, error) {
	decoder := c.decoders.Get().(*zstd.Decoder)
	defer c.decoders.Put(decoder)
	return decoder.DecodeAll(packed, buffer[:0])
}
