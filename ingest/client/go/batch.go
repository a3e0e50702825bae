package weir

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// A batch is the body of a request, and stays the same over its attempts.
type batch struct {
	key     string // Idempotency-Key
	body    []byte // compressed; nil while it is on disk
	entries int    // without the notice
	first   uint64 // number of the first entry; math.MaxUint64 without one
	notice  counts // what the last entry says was dropped
	since   time.Time
	file    string // in the spool
	size    int64  // of the file
}

// newBatch encodes entries. It keeps none of their memory.
func newBatch(items []item, notice []byte, now time.Time) *batch {
	texts := make([][]byte, 0, len(items)+1)
	first := uint64(math.MaxUint64)
	for _, i := range items {
		first = min(first, i.number)
		texts = append(texts, i.text)
	}
	if notice != nil {
		texts = append(texts, notice)
	}
	return &batch{key: rand.Text(), body: compress(texts), entries: len(items), first: first, since: now}
}

func compress(texts [][]byte) []byte {
	var body bytes.Buffer
	w, _ := gzip.NewWriterLevel(&body, gzip.BestSpeed)  // errs for unknown levels alone
	write := func(text []byte) { _, _ = w.Write(text) } // a buffer takes all
	write([]byte(`{"logs":[`))
	for i, text := range texts {
		if i > 0 {
			write([]byte(","))
		}
		write(text)
	}
	write([]byte("]}"))
	_ = w.Close()
	return bytes.Clone(body.Bytes())
}

// without returns the batch without the entries at fault, of which Weir has
// stored none, under another key: it is another body. The same batch has the
// same key then, in a later process too.
func (b *batch) without(faults map[int]bool) (*batch, error) {
	r, err := gzip.NewReader(bytes.NewReader(b.body))
	if err != nil {
		return nil, fmt.Errorf("weir: a batch cannot be decompressed: %w", err)
	}
	var body struct{ Logs []json.RawMessage }
	if err := json.NewDecoder(r).Decode(&body); err != nil {
		return nil, fmt.Errorf("weir: a batch cannot be read: %w", err)
	}
	var texts [][]byte
	rest := *b
	for i, text := range body.Logs {
		switch {
		case !faults[i]:
			texts = append(texts, text)
		case i < b.entries:
			rest.entries--
		}
	}
	rest.body = compress(texts)
	rest.key = fmt.Sprintf("%x", sha256.Sum256(append([]byte(b.key), rest.body...)))
	return &rest, nil
}
