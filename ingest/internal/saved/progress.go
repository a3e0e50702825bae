package saved

import (
	"context"
	"time"
)

// A Progress finds up to when the log store has all that was accepted: it
// looks where the log ends, and later whether the log store is there. It is
// for one goroutine at a time.
type Progress struct {
	Ends   func(ctx context.Context) (map[int]int64, error) // of the log, by partition
	Stored func(ctx context.Context) (map[int]int64, error) // how far the log store is
	Clock  func() time.Time

	asked   time.Time
	ends    map[int]int64 // at asked; nil: they are reached
	reached time.Time
}

// Reach returns the latest time known up to which all is stored; zero: none is.
func (p *Progress) Reach(ctx context.Context) (time.Time, error) {
	if p.ends == nil {
		now := p.Clock()
		ends, err := p.Ends(ctx)
		if err != nil {
			return p.reached, err
		}
		p.asked, p.ends = now, ends
	}
	stored, err := p.Stored(ctx)
	if err != nil {
		return p.reached, err
	}
	for partition, end := range p.ends {
		if stored[partition] < end {
			return p.reached, nil
		}
	}
	p.reached, p.ends = p.asked, nil
	return p.reached, nil
}
