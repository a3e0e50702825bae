package identity

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
)

// An unknown type of event, of a newer version, changes nothing and is
// no failure; later events are applied.
func TestUnknownTypesOfCredentialsPass(t *testing.T) {
	credentials, key := NewCredentials(time.Now), contract.CredentialKey("secret")
	consume := func(eventType, value string) {
		t.Helper()
		record := bus.Record{Key: []byte(key), Value: []byte(value), Headers: []bus.Header{{Key: contract.HeaderType, Value: []byte(eventType)}}}
		if err := credentials.Consume(record); err != nil {
			t.Fatalf("%s: %v", eventType, err)
		}
	}
	known := func() bool { _, err := credentials.Lookup("secret"); return err == nil }
	consume(contract.TypeCredentialChanged, `{"kind":"api_key","state":"active","version":1}`)
	consume("weir.credentials.v1.thrown", `{"kind":"api_key","state":"revoked","version":9}`)
	consume("weir.credentials.v1.sung", `no JSON`)
	if !known() {
		t.Error("an event of an unknown type was applied")
	}
	consume(contract.TypeCredentialChanged, `{"kind":"api_key","state":"revoked","version":2}`)
	if known() {
		t.Error("the revocation behind unknown types was not applied")
	}
}

// While a topic is read again that lost records, an unknown key or token
// can't be judged, known ones are.
func TestWhatALostTopicHadIsNotRefused(t *testing.T) {
	credentials := NewCredentials(time.Now)
	secret := func(digit string) string { return APIKeyPrefix + strings.Repeat(digit, secretDigits) }
	for digit, state := range map[string]string{"a": contract.CredentialActive, "b": contract.CredentialRevoked} {
		value := fmt.Sprintf(`{"kind":"api_key","state":%q,"version":2}`, state)
		testenv.Must(t, credentials.Apply(contract.CredentialKey(secret(digit)), []byte(value)))
	}
	var again error
	credentials.whole = func() error { return again }
	guard := NewGuard(GuardConfig{Credentials: credentials, Clock: time.Now})
	pass := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	check := func(unknown, token, session int) {
		t.Helper()
		for name, c := range map[string]struct {
			guarded func(http.Handler) http.Handler
			header  string
			value   string
			want    int
		}{
			"known":   {guard.RequireAPIKey(), "X-Api-Key", secret("a"), 200},
			"revoked": {guard.RequireAPIKey(), "X-Api-Key", secret("b"), 401},
			"unknown": {guard.RequireAPIKey(), "X-Api-Key", secret("c"), unknown},
			"none":    {guard.RequireAPIKey(), "X-Api-Key", "", 401},
			"token":   {guard.RequireScope("billing:read"), "Authorization", "Bearer " + ServiceTokenPrefix + strings.Repeat("d", secretDigits), token},
			"session": {guard.RequireSession(refuse), "Cookie", SessionCookie + "=" + SessionPrefix + strings.Repeat("e", secretDigits), session},
		} {
			request, answer := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
			request.Header.Set(c.header, c.value)
			c.guarded(pass).ServeHTTP(answer, request)
			if answer.Code != c.want {
				t.Errorf("%s: %d %s, want %d", name, answer.Code, answer.Body, c.want)
			}
		}
	}
	check(401, 401, 303)
	again = errors.New("it is read again")
	check(500, 500, 500)
}

func refuse(w http.ResponseWriter, _ *http.Request, err error) {
	if problem, is := errors.AsType[*httpapi.Problem](err); is {
		w.WriteHeader(problem.Status)
	}
}
