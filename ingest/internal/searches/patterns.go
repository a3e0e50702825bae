package searches

import (
	"context"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/identity"
)

// Patterns are those of the messages of entries.
type Patterns struct {
	ingest.FieldCounts
	Counted ingest.Counted  // the entries that have them
	Before  *ingest.Counted // what they were compared with; nil: nothing
}

// Patterns finds the patterns of what the caller may read, within some
// bytes; 0: as a search may. With a time it marks those as new that the
// entries from it on until the search begins do not have: this is a count of its
// own, so that a busy time leaves some of the share for the one before.
func (s *Service) Patterns(ctx context.Context, who identity.Principal, search ingest.Search, before *ingest.Instant, bytes int) (found Patterns, err error) {
	field, err := ingest.ParseField(ingest.FieldPattern)
	if err != nil {
		return found, err
	}
	const all = 2 * ingest.MaxPatterns // there are fewer: what the list leaves out is no less known
	count := ingest.Count{Search: search, By: []ingest.Field{field}, MaxBytes: bytes}
	if found.Counted, err = s.Count(ctx, who, count, all); err != nil {
		return found, err
	}
	found.FieldCounts = found.Counted.Fields[0]
	if before == nil || search.From == nil {
		return found, nil
	}
	count.Search.From, count.Search.To = before, search.From
	earlier, err := s.Count(ctx, who, count, all)
	if err != nil {
		return found, err
	}
	found.Before = &earlier
	ingest.MarkNew(&found.FieldCounts, &earlier.Fields[0])
	return found, nil
}
