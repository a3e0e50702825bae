package unitofwork

import (
	"net/netip"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
)

// maxClient is how much is kept of a User-Agent, in bytes.
const maxClient = 200

// A Request is a caller, an origin, and an identity of the
// request. All of it is kept with the events.
type Request struct {
	Caller         tenants.Caller
	Kind           tenants.ActorKind // empty: a member where there is a role, else a service token
	Role           tenants.Role      // the caller's at the time, where that is a member; empty for a service token
	Address        netip.Addr        // where the request came from; zero: unknown
	Client         string            // the client's User-Agent, of any length and content
	ID             string            // of the request
	IdempotencyKey string            // empty: every request is a new one

	Devices []tenants.Secret // by which the browser may be known again, at most tenants.MaxDeviceSecrets
	Device  tenants.Device   // by which it is, to the member who is to be signed in; see Recognize
}

// By is the request as a member's, who is known only now.
func (r Request) By(member tenants.Member) Request {
	r.Caller, r.Role = tenants.Caller{ID: member.ID, Organization: member.Organization}, member.Role
	return r
}

// Metadata is what is kept of a request with each event that follows from it.
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

// AtTheServer is a request of a program with the installation's configuration,
// which may do what an operator may. client names the program and its user.
func AtTheServer(client string) Request {
	return Request{
		Caller: tenants.Caller{ID: "command", Organization: tenants.Installation, Scopes: OperatorScopes()},
		Kind:   tenants.ConfigurationActor, Client: client,
	}
}

// AtStart is a request that the installation makes to itself when it starts.
func AtStart() Request {
	return Request{Caller: tenants.Caller{ID: "start", Organization: tenants.Installation}, Kind: tenants.SystemActor}
}

// BySystem is a request of the system itself; part is what decided.
func BySystem(part string) Request {
	return Request{Caller: tenants.Caller{ID: part}, Kind: tenants.SystemActor}
}

// ByConfiguration is a request that follows from the
// configuration of the installation.
func ByConfiguration() Request {
	return Request{Caller: tenants.Caller{ID: "configuration"}, Kind: tenants.ConfigurationActor}
}

// OperatorScopes are the scopes of the configured operator: it could issue
// itself any, so it has what operators need.
func OperatorScopes() []string {
	return []string{"tenants:admin", "billing:read", "billing:write"}
}
