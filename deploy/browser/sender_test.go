//go:build browser

package browser

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/testenv"
)

// A web page sends logs with a key that lists its origin, also what waits
// when it is left. The entries are marked. Another page can't use the key.
func TestPageSends(t *testing.T) {
	in := newInstallation(t)
	_, project := in.acme(t)
	reader, err := in.api.CreateAPIKey(t.Context(), in.token, project, "prod", "to read")
	testenv.Must(t, err)
	var key string
	page := http.NewServeMux()
	page.Handle("/", http.FileServer(http.Dir("../../ingest/client/javascript")))
	page.HandleFunc("/shop", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><title>Shop</title><link rel=icon href=data:><h1>Shop</h1><script type=module>
			import { Client } from "/browser.js";
			window.log = new Client({ baseURL: "%s/v1", apiKey: "%s", interval: 50, captureErrors: true });
		</script>`, in.origin, key)
	})
	shop, elsewhere := httptest.NewServer(page), httptest.NewServer(page)
	t.Cleanup(shop.Close)
	t.Cleanup(elsewhere.Close)
	key = in.browserKey(t, project, shop.URL)

	chromium := startChromium(t, in.origin)
	b := openTab(t, chromium, shop.URL)
	b.open("/shop")
	b.await(`window.log`)
	ask[bool](b, `log.warn("the cart is full", {cart: 4711, untrusted_client: false}), setTimeout(() => { throw new TypeError("no cart") }), true`)
	b.await(`log.stats().accepted === 2`)
	ask[bool](b, `log.info("left the page"), true`)
	b.open("/package.json") // at once
	found := in.awaitEntries(t, reader.Key, 3)
	for _, want := range []string{
		`"message":"the cart is full","metadata":{"cart":4711,"untrusted_client":true}`, `"type":"TypeError","message":"no cart"`, `"message":"left the page"`,
	} {
		if !strings.Contains(found, want) {
			t.Errorf("%s is not in\n%s", want, found)
		}
	}
	if marked := strings.Count(found, `"untrusted_client":true`); marked != 3 {
		t.Errorf("%d of 3 entries are marked:\n%s", marked, found)
	}

	other := openTab(t, chromium, elsewhere.URL)
	other.open("/shop")
	other.await(`window.log`)
	sent := `fetch("` + in.origin + `/v1/logs", {method: "POST", headers: {"x-api-key": "` + key + `", "Content-Type": "application/json"}, body: '{"logs":[]}'})`
	if answer := ask[string](other, sent+`.then((a) => "answered " + a.status, (failure) => failure.name)`); answer != "TypeError" {
		t.Errorf("another page: %s", answer)
	}
}

// browserKey issues a key for the web pages of an origin.
func (in installation) browserKey(t *testing.T, project, origin string) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"project": project, "environment": "prod", "name": "the shop's pages", "access": "write", "rate_per_minute": 60, "origins": []string{origin},
	})
	testenv.Must(t, err)
	answer, err := in.api.Call(t.Context(), client.Request{Method: "POST", Path: "/api-keys", Body: body,
		Header: map[string]string{"Authorization": "Bearer " + in.token, "Content-Type": "application/json"}})
	testenv.Must(t, err)
	var issued struct{ Key string }
	if testenv.Must(t, json.Unmarshal(answer.Body, &issued)); issued.Key == "" {
		t.Fatalf("%d %s", answer.Status, answer.Body)
	}
	return issued.Key
}

// awaitEntries returns the entries that a key reads, once there are so many.
func (in installation) awaitEntries(t *testing.T, key string, want int) (found string) {
	t.Helper()
	testenv.Eventually(t, func() error {
		answer, err := in.api.Call(t.Context(), client.Request{Path: "/logs", Header: map[string]string{"x-api-key": key, "Accept": "application/x-ndjson"}})
		if found = string(answer.Body); strings.Count(found, "\n") < want {
			return errors.Join(err, fmt.Errorf("less than %d entries: %d %s", want, answer.Status, found))
		}
		return err
	})
	return found
}
