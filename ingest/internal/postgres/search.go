package postgres

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/pg"
)

// headerBytes is what passing over a block counts for, beside the filter of its words.
const headerBytes = 128

// Search finds a page of an organization's entries, within the store's limits for one page.
func (s *Store) Search(ctx context.Context, organization pg.Organization, search ingest.Search) (result ingest.Result, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.Time+searchSlack)
	defer cancel()
	err = pg.ReadAs(ctx, s.readers, organization, func(tx pgx.Tx) error {
		scan := scan{
			ctx: ctx, store: s, tx: tx, organization: organization, search: &search,
			parser: ingest.NewParser(ingest.DefaultLimits()), ends: s.clock().Add(s.limits.Time),
		}
		if scan.headers, err = openHeaders(ctx, tx, organization, &search); err != nil {
			return fmt.Errorf("cannot search the log store: %w", err)
		}
		result, err = search.Find(&scan)
		s.metrics.searched(scan.read, result.Incomplete)
		return err
	})
	return result, err
}

// searchSlack is how much longer than its share a search may take to read one more block, from a slow database.
const searchSlack = 15 * time.Second

// A scan reads the blocks of one search. It is the ingest.Blocks of one transaction.
type scan struct {
	ctx          context.Context //nolint:containedctx // of the transaction, with which the scan ends
	store        *Store
	tx           pgx.Tx
	organization pg.Organization
	search       *ingest.Search
	parser       *ingest.Parser
	ends         time.Time
	read         int // bytes of text and of headers
	headers      []*headers
	unpacked     []byte
}

// Spent reports whether the search has had its share of bytes or of time.
func (s *scan) Spent() bool {
	return s.read >= s.store.limits.Bytes || !s.store.clock().Before(s.ends)
}

// Next returns the next header of all cursors.
func (s *scan) Next() (next *ingest.Candidate, err error) {
	var from *headers
	for _, h := range s.headers {
		head, err := h.head(s.ctx, s.tx)
		if err != nil {
			return nil, fmt.Errorf("cannot read the log store's headers: %w", err)
		}
		if head != nil && (next == nil || s.search.Sooner(s.search.Key(head), s.search.Key(next))) {
			next, from = head, h
		}
	}
	if next != nil {
		from.fetched = from.fetched[1:]
		s.read += headerBytes + len(next.Words)
	}
	return next, nil
}

// Read unpacks a block's entries.
func (s *scan) Read(block ingest.Ref) ([]ingest.Stored, error) {
	var data []byte
	err := s.tx.QueryRow(s.ctx, `SELECT data FROM blocks WHERE organization = $1 AND project = $2 AND received_at = $3 AND block = $4::uuid`,
		s.organization, block.Project, block.ReceivedAt, uuidText(block.ID)).Scan(&data)
	if errors.Is(err, pgx.ErrNoRows) { // its day was dropped
		return nil, nil
	}
	if err == nil {
		s.unpacked, err = s.store.unpack(data, s.unpacked)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read block %s: %w", uuidText(block.ID), err)
	}
	s.read += len(s.unpacked)
	return ingest.ParseEntries(s.unpacked)
}

func uuidText(id [16]byte) string { return hex.EncodeToString(id[:]) }

// Message unescapes the message of an entry.
func (s *scan) Message(entry []byte) ([]byte, error) {
	read, err := s.parser.ReadEntry(entry)
	return read.Message, err
}
