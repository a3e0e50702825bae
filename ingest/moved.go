package ingest

import "slices"

// Moved says which moves of entries to another store count beside a snapshot of the
// blocks: those up to a number, except some.
type Moved struct {
	UpTo   int64
	Except []int64
}

// Join makes one page of those of two stores, which hold different entries. Only a
// may have stopped among blocks that overlap.
func (s *Search) Join(a, b Result) Result {
	read := a.Read + b.Read
	if a.Next != nil && a.Next.Seen != nil { // nothing of it is certain yet
		a.Read = read
		return a
	}
	limit := s.sooner(a.Next, b.Next)
	list := slices.Concat(a.Found, b.Found)
	slices.SortFunc(list, func(x, y Found) int {
		if s.before(x.Place, y.Place) {
			return -1
		}
		return 1
	})
	if limit != nil {
		if certain := slices.IndexFunc(list, func(f Found) bool { return s.before(*limit, f.Place) }); certain >= 0 {
			list = list[:certain]
		}
	}
	joined := Result{Found: list, Read: read}
	if fits := s.fits(list); fits < len(list) {
		joined.Found, joined.Next = list[:fits], &Position{After: &list[fits-1].Place}
		return joined
	}
	if limit != nil {
		joined.Next, joined.Incomplete = &Position{After: limit}, a.Incomplete || b.Incomplete
	}
	return joined
}

// sooner is the place up to which both pages are known; nil: all is.
func (s *Search) sooner(a, b *Position) *Place {
	if a == nil || b != nil && s.before(*b.After, *a.After) {
		a = b
	}
	if a == nil {
		return nil
	}
	return a.After
}

// fits is how many entries a page has room for.
func (s *Search) fits(list []Found) (many int) {
	size := 0
	for many = range list {
		if size += len(list[many].Text); many == s.Limit || size > s.PageBytes() && many > 0 {
			return many
		}
	}
	return len(list)
}
