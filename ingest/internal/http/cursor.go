package http

import (
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/httpapi"
)

// position is the form of a Position in a cursor.
type position struct {
	After   *place `json:"a,omitempty"`
	Seen    *key   `json:"k,omitempty"`
	Leads   []lead `json:"l,omitempty"`
	Horizon *place `json:"h,omitempty"`
}

type place struct {
	Seconds int64  `json:"s"`
	Nanos   uint32 `json:"n"`
	Batch   []byte `json:"b"`
	Index   int    `json:"i"`
}

type key struct {
	Seconds int64  `json:"s"`
	Nanos   uint32 `json:"n"`
	Block   []byte `json:"b"`
}

type lead struct {
	Project string `json:"p"`
	Micros  int64  `json:"r"` // of the receipt
	Block   []byte `json:"b"`
}

// NextCursor is the cursor of the page that starts at next; nil where there is none.
func NextCursor(next *ingest.Position) *string {
	if next == nil {
		return nil
	}
	at := position{After: placeOf(next.After), Horizon: placeOf(next.Horizon)}
	if seen := next.Seen; seen != nil {
		at.Seen = &key{seen.First.Seconds, seen.First.Nanos, seen.ID[:]}
	}
	for i := range next.Leads {
		ref := &next.Leads[i]
		at.Leads = append(at.Leads, lead{ref.Project, ref.ReceivedAt.UnixMicro(), ref.ID[:]})
	}
	cursor := httpapi.EncodeCursor(at)
	return &cursor
}

func placeOf(p *ingest.Place) *place {
	if p == nil {
		return nil
	}
	return &place{p.Time.Seconds, p.Time.Nanos, p.Batch[:], p.Index}
}

func readCursor(into *ingest.Position, cursor string) error {
	if cursor == "" {
		return nil
	}
	var at position
	if err := httpapi.DecodeCursor(cursor, &at); err != nil {
		return err
	}
	if !at.well() {
		return httpapi.DecodeCursor("-", &at) // a cursor of our form that we never made
	}
	*into = at.read()
	return nil
}

// well tells whether all ids have their length.
func (p *position) well() bool {
	for _, l := range p.Leads {
		if len(l.Block) != 16 {
			return false
		}
	}
	return p.After != nil && len(p.After.Batch) == 16 && (p.Horizon == nil || len(p.Horizon.Batch) == 16) && (p.Seen == nil || len(p.Seen.Block) == 16)
}

func (p *position) read() ingest.Position {
	at := ingest.Position{After: p.After.read(), Horizon: p.Horizon.read()}
	if p.Seen != nil {
		at.Seen = &ingest.Key{First: ingest.Instant{Seconds: p.Seen.Seconds, Nanos: p.Seen.Nanos}, ID: [16]byte(p.Seen.Block)}
	}
	for _, l := range p.Leads {
		at.Leads = append(at.Leads, ingest.Ref{Project: l.Project, ReceivedAt: time.UnixMicro(l.Micros).UTC(), ID: [16]byte(l.Block)})
	}
	return at
}

func (p *place) read() *ingest.Place {
	if p == nil {
		return nil
	}
	return &ingest.Place{Time: ingest.Instant{Seconds: p.Seconds, Nanos: p.Nanos}, Batch: [16]byte(p.Batch), Index: p.Index}
}
