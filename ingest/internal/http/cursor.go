package http

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/contract/tier"
	"github.com/weirlog/weir/shared/httpapi"
)

// position is the form of a Position in a cursor.
type position struct {
	After   *place `json:"a,omitempty"`
	Seen    *key   `json:"k,omitempty"`
	Leads   []lead `json:"l,omitempty"`
	Horizon *place `json:"h,omitempty"`
	Merges  int64  `json:"m,omitempty"`
}

type place struct {
	Seconds int64  `json:"s"`
	Nanos   uint32 `json:"n"`
	Batch   id     `json:"b"`
	Index   int    `json:"i"`
}

type key struct {
	Seconds int64  `json:"s"`
	Nanos   uint32 `json:"n"`
	Block   id     `json:"b"`
}

type lead struct {
	Project string `json:"p"`
	Micros  int64  `json:"r"` // of the receipt
	Days    int    `json:"d"` // of its retention
	Block   id     `json:"b"`
}

// id is the id of a batch or a block.
type id [16]byte

// MarshalText writes it as hexadecimal digits.
func (i id) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, i[:]), nil }

// UnmarshalText reads it back.
func (i *id) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(i)) {
		return fmt.Errorf("cannot read id of %d digits", len(text))
	}
	_, err := hex.Decode(i[:], text)
	return err
}

// NextCursor returns the cursor of the page that starts at next; nil for none.
func NextCursor(r *http.Request, next *ingest.Position) *string {
	if next == nil {
		return nil
	}
	at := position{After: placeOf(next.After), Horizon: placeOf(next.Horizon), Merges: next.Merges}
	if seen := next.Seen; seen != nil {
		at.Seen = &key{seen.First.Seconds, seen.First.Nanos, seen.ID}
	}
	for i := range next.Leads {
		ref := &next.Leads[i]
		at.Leads = append(at.Leads, lead{ref.Project, ref.ReceivedAt.UnixMicro(), ref.RetentionDays, ref.ID})
	}
	cursor := httpapi.EncodeCursor(r, at)
	return &cursor
}

func placeOf(p *ingest.Place) *place {
	if p == nil {
		return nil
	}
	return &place{p.Time.Seconds, p.Time.Nanos, p.Batch, p.Index}
}

func readCursor(into *ingest.Position, r *http.Request, cursor string) error {
	if cursor == "" {
		return nil
	}
	var at position
	if err := httpapi.DecodeCursor(r, cursor, &at); err != nil {
		return err
	}
	*into = at.read()
	return nil
}

func (p *position) read() ingest.Position {
	at := ingest.Position{After: p.After.read(), Horizon: p.Horizon.read(), Merges: p.Merges}
	if p.Seen != nil {
		at.Seen = &ingest.Key{First: ingest.Instant{Seconds: p.Seen.Seconds, Nanos: p.Seen.Nanos}, ID: p.Seen.Block}
	}
	for _, l := range p.Leads {
		days := cmp.Or(l.Days, tier.LongestRetentionDays) // cursors had none when nothing was removed
		at.Leads = append(at.Leads, ingest.Ref{Project: l.Project, ReceivedAt: time.UnixMicro(l.Micros).UTC(), RetentionDays: days, ID: l.Block})
	}
	return at
}

func (p *place) read() *ingest.Place {
	if p == nil {
		return nil
	}
	return &ingest.Place{Time: ingest.Instant{Seconds: p.Seconds, Nanos: p.Nanos}, Batch: p.Batch, Index: p.Index}
}
