package httpapi

import (
	"net/http"
	"net/netip"
)

// Limits of a client network's requests without a credential. A browser
// caches the files of pages, but a whole office may open them at once.
const (
	documentsPerMinute = 600
	filesPerMinute     = 3000
)

// public limits what a router answers to anybody, by client network: a
// flood would take the processors from clients with a credential.
type public struct{ documents, files, health *AnonymousLimit }

func newPublic(options Options) public {
	limited := func(perMinute int) *AnonymousLimit {
		return NewAnonymousLimit(perMinute, options.Proxies, options.Clock)
	}
	return public{limited(documentsPerMinute), limited(filesPerMinute), limited(documentsPerMinute)}
}

// PublicDocument limits a document, such as a description of the API.
func PublicDocument(next http.Handler) http.Handler {
	return publicly(next, func(p *public, r *http.Request) error { return p.documents.Admit(r) })
}

// PublicFile limits what pages refer to.
func PublicFile(next http.Handler) http.Handler {
	return publicly(next, func(p *public, r *http.Request) error { return p.files.Admit(r) })
}

// publicHealth limits health requests, except internal probes: a
// refused one would restart the service.
func publicHealth(next http.Handler) http.Handler {
	return publicly(next, func(p *public, r *http.Request) error {
		if isInternal(ClientAddress(r, p.health.proxies)) {
			return nil
		}
		return p.health.Admit(r)
	})
}

// isInternal reports whether an address can't belong to the Internet.
func isInternal(client netip.Addr) bool {
	return !client.IsValid() || client.IsLoopback() || client.IsPrivate() || client.IsLinkLocalUnicast()
}

// publicly admits requests to next within their router's limits.
func publicly(next http.Handler, admit func(p *public, r *http.Request) error) http.Handler {
	return Handle(func(w http.ResponseWriter, r *http.Request) error {
		if router := providedTo(r); router != nil {
			if err := admit(&router.public, r); err != nil {
				return err
			}
		}
		next.ServeHTTP(w, r)
		return nil
	})
}
