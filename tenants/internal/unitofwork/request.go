package unitofwork

import (
	"net/netip"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
)

// maxClient is how much of a User-Agent is stored, in bytes.
const maxClient = 200

// A Request is a caller, an origin, and the request's
// identity. All of it is stored with the events.
type Request struct {
	Caller         tenants.Caller
	Kind           tenants.ActorKind // empty: a member if there is a role, else a service token
	Role           tenants.Role      // a member's at the time; empty for a service token
	Address        netip.Addr        // of the client; zero: unknown
	Client         string            // the client's User-Agent, of any length and content
	ID             string            // of the request
	IdempotencyKey string            // empty: every request is new

	Devices []tenants.Secret // candidates of the browser, at most tenants.MaxDeviceSecrets
	Device  tenants.Device   // the browser's, for the member who signs in; see Recognize
}

// By is the request of a member who is identified only now.
func (r Request) By(member tenants.Member) Request {
	r.Caller, r.Role = tenants.Caller{ID: member.ID, Organization: member.Organization}, member.Role
	return r
}

// Metadata is what is stored of a request with each of its events.
func (r Request) Metadata() eventstore.Metadata {
	return tenants.Origin{
		Actor: r.Caller.ID, Kind: r.kind(), Role: r.Role, Address: httpapi.AddressText(r.Address), Client: httpapi.ClipUserAgent(r.Client, maxClient),
		Request: r.ID,
	}.Metadata()
}

func (r Request) kind() tenants.ActorKind {
	switch {
	case r.Kind != "":
		return r.Kind
	case r.Role != "":
		return tenants.MemberActor
	}
	return tenants.ServiceTokenActor
}

// AtTheServer is a request of a program with the
// installation's configuration, which may do what an
// operator may. client names the program and its user.
func AtTheServer(client string) Request {
	return Request{
		Caller: tenants.Caller{ID: "command", Organization: tenants.Installation, Scopes: OperatorScopes()},
		Kind:   tenants.ConfigurationActor, Client: client,
	}
}

// AtStart is a request of the installation at its start.
func AtStart() Request {
	return Request{Caller: tenants.Caller{ID: "start", Organization: tenants.Installation}, Kind: tenants.SystemActor}
}

// BySystem is a request of the system itself; part is what decided.
func BySystem(part string) Request {
	return Request{Caller: tenants.Caller{ID: part}, Kind: tenants.SystemActor}
}

// ByConfiguration is a request of the installation's configuration.
func ByConfiguration() Request {
	return Request{Caller: tenants.Caller{ID: "configuration"}, Kind: tenants.ConfigurationActor}
}

// OperatorScopes are the scopes of the configured operator: it
// could issue itself any, so it has all that operators need.
func OperatorScopes() []string {
	return []string{"tenants:admin", "billing:read", "billing:write"}
}
