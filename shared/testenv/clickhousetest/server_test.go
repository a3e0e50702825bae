package clickhousetest

import (
	"strings"
	"sync"
	"testing"

	"github.com/weirlog/weir/shared/testenv"
)

// Each test has a database of its own, and queries run beside each other.
func TestURL(t *testing.T) {
	one, other := URL(t), URL(t)
	if one == other {
		t.Fatalf("both have %s", one)
	}
	address, _, _ := cutLast(one)
	s := served{address: address}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if answer, err := s.query(t.Context(), "SELECT sleep(0.1)"); err != nil || strings.TrimSpace(answer) != "0" {
				t.Errorf("%q, %v", answer, err)
			}
		})
	}
	both.Wait()
	if _, err := s.query(t.Context(), "SELECT nothing"); err == nil || !strings.Contains(err.Error(), "Code: 47") {
		t.Errorf("%v, want an error with ClickHouse's code", err)
	}
	version, err := s.query(t.Context(), "SELECT version()")
	testenv.Must(t, err)
	t.Logf("ClickHouse %s", version)
}

func cutLast(url string) (before, after string, found bool) {
	i := strings.LastIndexByte(url, '/')
	return url[:i], url[i+1:], i >= 0
}
