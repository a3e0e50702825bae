package ingest

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

// MayMatchIn reports whether a block of a bundle with these words may have a match.
func (q Query) MayMatchIn(words Words) bool {
	return q.MayMatch(&Header{Levels: ^SeveritySet(0), Words: words})
}
