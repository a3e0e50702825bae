package ingest

import "encoding/binary"

// A Bundle is blocks that are stored together. One look at the filter of their
// words and values excludes them all, and one at their summary counts them.
type Bundle struct {
	blocks []*Block
	words  wordSet
}

// maxBundleWords bounds the filter of a bundle, to 512 KiB and what one block has.
const maxBundleWords = 1 << 18

// Full reports whether the next block is to begin another bundle.
func (b *Bundle) Full() bool { return b.words.count >= maxBundleWords }

// Add adds a block of a Builder.
func (b *Bundle) Add(block *Block) {
	b.blocks = append(b.blocks, block)
	for _, hash := range block.words.slots {
		if hash != 0 {
			b.words.insert(hash)
		}
	}
	b.words.zero = b.words.zero || block.words.zero
}

// Filter is the filter of all blocks.
func (b *Bundle) Filter() WordFilter { return b.words.filter() }

// AppendHeader appends the stored form of the header of all blocks, without its
// end and its words: the begin, the bytes of text, the environments, and the number of
// entries of each level.
func (b *Bundle) AppendHeader(dst []byte) []byte {
	h := b.blocks[0].Header
	for _, block := range b.blocks[1:] {
		h.Include(&block.Header)
	}
	dst = binary.AppendUvarint(binary.AppendVarint(dst, h.Min.Seconds), uint64(h.Min.Nanos))
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, uint64(h.Bytes)), uint64(h.Environments)) //nolint:gosec // not negative
	for _, entries := range h.Entries {
		dst = binary.AppendUvarint(dst, uint64(entries)) //nolint:gosec // not negative
	}
	return dst
}

// ReadBundle reads the header of a bundle back, into one that has its end and its words.
func (h *Header) ReadBundle(stored []byte) error {
	r := blockReader{data: stored}
	h.Min = Instant{Seconds: r.varint(), Nanos: uint32(r.int())} //nolint:gosec // as stored
	h.Bytes, h.Environments = r.int(), EnvironmentSet(r.uvarint())
	for level := range h.Entries {
		if h.Entries[level] = int64(r.int()); h.Entries[level] > 0 {
			h.Levels = h.Levels.With(Severity(level)) //nolint:gosec // at most SeverityFatal
		}
	}
	if r.failed || len(r.data) > 0 {
		return errBlock
	}
	return nil
}
