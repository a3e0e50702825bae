package ledger

import (
	"errors"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/testenv"
)

// Given a plan of 100 bytes, and a larger one that is scheduled, other
// terms hold at once but for the allowance of the running period.
func TestFollowingOtherTerms(t *testing.T) {
	books := newBooks(Indie)
	perform(t, books, use("11-02", 10), to("11-03", "12-01", Plan{Tier: Scale}))
	rules := Rules{Version: 2, Tiers: Tiers{Indie: {Quota: 70, RequestsPerMinute: 7, RetentionDays: 3}, Scale: {Quota: 300, RequestsPerMinute: 900, RetentionDays: 4}},
		Thresholds: Thresholds{30}}
	follow := func() []Decision {
		decisions, err := rules.Follow(books.Organization, date("11-04"))
		testenv.Must(t, err)
		return decisions
	}
	decisions := follow()
	if len(decisions) != 1 {
		t.Fatalf("decided %v", decisions)
	}
	perform(t, books, decide("11-04", decisions[0]))
	if again := follow(); len(again) != 0 {
		t.Errorf("decided again: %v", again)
	}
	book, err := books.At(date("11-04"))
	if err != nil || book.Allowance() != 100 {
		t.Errorf("the running period allows %d, error %v", book.Allowance(), err)
	}
	state := NewAccountState(books.Organization, book, nil, 1, date("11-04"))
	if state.RequestsPerMinute != 7 || state.RetentionDays != 3 || state.NextQuota != 300 {
		t.Errorf("state %+v", state)
	}
	if terms := books.Organization.Plans.At(date("11-04")).TierTerms; terms.Version != 2 {
		t.Errorf("terms in force %+v", terms)
	}
	perform(t, books, advance("12-01"))
	if book, err = books.At(date("12-02")); err != nil || book.Allowance() != 300 {
		t.Errorf("the next period allows %d, error %v", book.Allowance(), err)
	}
	if _, err := (Rules{Version: 3}).Follow(books.Organization, date("12-02")); !errors.Is(err, ErrUnknownTier) {
		t.Errorf("error %v, want ErrUnknownTier", err)
	}
}

func TestRetention(t *testing.T) {
	kept, now := DefaultRetention(), time.Date(2026, 11, 22, 23, 59, 0, 0, time.UTC)
	if since := kept.TransfersSince(now); !since.Equal(time.Date(2024, 10, 22, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("transfers are kept since %s", since)
	}
	if since := kept.BooksSince(now); !since.Equal(time.Date(2016, 11, 22, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("books are kept since %s", since)
	}
	for kept, fine := range map[Retention]bool{kept: true, {1, 3, 3}: true, {1, 2, 3}: false, {1, 4, 3}: false, {4, 3, 3}: false, {0, 3, 3}: false, {}: false} {
		if err := kept.Validate(); (err == nil) != fine {
			t.Errorf("%+v: %v", kept, err)
		}
	}
}
