package postgres

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/compression"
)

func (s *Store) packColumns(b *Block) (packed []byte) {
	if b.Bytes < ingest.SmallBlockBytes { // it is merged
		return []byte{}
	}
	return s.pack(b.AppendColumns)
}

// pack compresses each part by itself, so that one is read without the
// others: the number of parts, their sizes, and then all of them.
func (s *Store) pack(appendParts func(each func(part []byte))) (packed []byte) {
	var sizes, parts []byte
	number := uint64(0)
	appendParts(func(part []byte) {
		before := len(parts)
		parts = append(parts, s.codec.Pack(part)...)
		sizes, number = binary.AppendUvarint(sizes, uint64(len(parts)-before)), number+1 //nolint:gosec // it has grown
	})
	return slices.Concat(binary.AppendUvarint(nil, number), sizes, parts)
}

// readColumns unpacks those columns of a block that a count needs, and says
// which rows match, nil: all; false where they don't suffice. They are valid as
// long as into is not used again.
func (p packed) readColumns(codec *compression.Codec, into *unpacked, count *ingest.Count, entries int64) (
	columns ingest.Columns, rows []bool, known bool, err error,
) {
	columns, known, err = into.readParts(p.columns, codec, &into.ofBlock, count.Columns, func(columns *ingest.Columns, number int, part []byte) error {
		return columns.Read(number, part, int(entries))
	})
	if known {
		rows, known = count.Select(&columns, int(entries))
	}
	return columns, rows, known, err
}

// readSummary is readColumns of a bundle.
func (p packed) readSummary(codec *compression.Codec, into *unpacked, count *ingest.Count) (summary ingest.Columns, known bool, err error) {
	return into.readParts(p.summary, codec, &into.ofBundle, count.Tables, (*ingest.Columns).ReadTable)
}

// A head is the first part of columns, as it was read last: most others are the same.
type head struct {
	packed  []byte
	columns ingest.Columns
}

func (u *unpacked) readParts(packed []byte, codec *compression.Codec, head *head, needed func(of *ingest.Columns) ([]int, bool),
	read func(of *ingest.Columns, number int, part []byte) error,
) (columns ingest.Columns, known bool, err error) {
	parts, err := columnParts(packed)
	if err != nil || len(parts) == 0 {
		return columns, false, err
	}
	u.columns = slices.Grow(u.columns, max(0, len(parts)-len(u.columns)))[:max(len(parts), len(u.columns))]
	unpack := func(i int) (err error) {
		u.columns[i], err = codec.Unpack(parts[i], u.columns[i])
		return err
	}
	if !bytes.Equal(head.packed, parts[0]) {
		if err := unpack(0); err != nil {
			return columns, false, err
		}
		if head.columns, err = ingest.ParseColumns(u.columns[0]); err != nil {
			head.packed = nil
			return columns, false, err
		}
		head.packed = append(head.packed[:0], parts[0]...)
	}
	numbers, known := needed(&head.columns)
	for _, i := range numbers {
		if i+1 >= len(parts) {
			return columns, false, errColumns
		}
		if err := unpack(i + 1); err != nil {
			return columns, false, err
		}
		if err := read(&head.columns, i, u.columns[i+1]); err != nil {
			return columns, false, err
		}
	}
	return head.columns, known, nil
}

var errColumns = errors.New("the columns of a block are damaged")

func columnParts(packed []byte) (parts [][]byte, err error) {
	next := func() (n uint64) {
		n, size := binary.Uvarint(packed)
		if size <= 0 || n > uint64(len(packed)) {
			packed, err = nil, errColumns
			return 0
		}
		packed = packed[size:]
		return n
	}
	if len(packed) == 0 {
		return nil, nil
	}
	sizes := make([]uint64, next())
	for i := range sizes {
		sizes[i] = next()
	}
	for _, size := range sizes {
		if size > uint64(len(packed)) {
			return nil, errColumns
		}
		parts, packed = append(parts, packed[:size]), packed[size:]
	}
	return parts, err
}
