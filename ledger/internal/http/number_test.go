package http_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/weirlog/weir/ledger"
)

// A number that is not whole or out of bounds is refused everywhere:
// none is rounded, truncated or misread.
func TestNumbersAreWholeAndBounded(t *testing.T) {
	a := newAPI(t)
	a.Start(t, "acme", ledger.Indie)
	before := a.must(t, 200, "GET", "subscription", "")
	requests := []string{
		`POST grants {"amount":%s}`, `POST grants {"amount":9,"priority":%s}`, `POST grants {"amount":9,"rollover_cap":%s}`, `POST adjustments {"amount":%s}`,
		`PUT subscription {"tier":"scale","quota":%s}`, `PUT subscription {"tier":"scale","requests_per_minute":%s}`,
		`PUT subscription {"tier":"scale","on_exhausted":"overage","overage_cap":%s}`, `PUT subscription {"tier":"scale","anchor_day":%s}`,
		`PUT budgets [{"project":"project","bytes":%s}]`, `PUT thresholds {"percents":[%s]}`, `POST dry-run {"bytes":%s}`, `POST simulation {"tier":"scale","quota":%s}`,
	}
	for _, number := range []string{
		"9223372036854775807", "9223372036854775808", "-9223372036854775808", "72057594037927937", "1.0", "1e1", "01", "0x1", "NaN", `"1"`, "true", "[1]",
	} {
		for _, request := range requests {
			parts := strings.SplitN(fmt.Sprintf(request, number), " ", 3)
			a.must(t, 400, parts[0], parts[1], parts[2])
		}
	}
	for path, list := range map[string]string{"grants": "items", "budgets": "items", "entries?reason=adjusted": "items"} {
		if found := a.must(t, 200, "GET", path, ""); len(found[list].([]any)) > 0 {
			t.Errorf("%s: %v", path, found)
		}
	}
	if now := a.must(t, 200, "GET", "subscription", ""); !reflect.DeepEqual(now, before) {
		t.Errorf("subscribed to %v, before to %v", now, before)
	}
}
