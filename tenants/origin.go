package tenants

import "strings"

// An ActorKind is a kind of actor.
type ActorKind string

// The kinds of actors.
const (
	MemberActor        ActorKind = "member"
	ServiceTokenActor  ActorKind = "service_token"
	ConfigurationActor ActorKind = "configuration" // of the installation
	SystemActor        ActorKind = "system"        // without an actor, as when a time has come
)

// An Origin is who made a decision, and from where,
// in the metadata of events. Empty parts are unknown.
type Origin struct {
	Actor   string // id of a member or service token, or the name of another actor
	Kind    ActorKind
	Role    Role   // of a member, at the time
	Address string // IP address of the client
	Client  string // its User-Agent
	Request string // id of the request
}

// Members of an event's metadata. They are stored.
const (
	metadataActor   = "actor"
	metadataKind    = "actor_kind"
	metadataRole    = "role"
	metadataAddress = "address"
	metadataClient  = "client"
	metadataRequest = "request"
)

// Metadata is the known part of the origin, as stored.
func (o Origin) Metadata() map[string]string {
	known := map[string]string{}
	for name, value := range map[string]string{
		metadataActor: o.Actor, metadataKind: string(o.Kind), metadataRole: string(o.Role), metadataAddress: o.Address,
		metadataClient: o.Client, metadataRequest: o.Request,
	} {
		if value != "" {
			known[name] = value
		}
	}
	return known
}

// OriginOf reads an origin from an event's metadata. In
// the first events the kind of actor follows from the id.
func OriginOf(metadata map[string]string) Origin {
	origin := Origin{
		Actor: metadata[metadataActor], Kind: ActorKind(metadata[metadataKind]), Role: Role(metadata[metadataRole]),
		Address: metadata[metadataAddress], Client: metadata[metadataClient], Request: metadata[metadataRequest],
	}
	if origin.Kind == "" {
		origin.Kind = kindOf(origin.Actor)
	}
	return origin
}

func kindOf(actor string) ActorKind {
	switch {
	case strings.HasPrefix(actor, "mem_"):
		return MemberActor
	case strings.HasPrefix(actor, "tok_"):
		return ServiceTokenActor
	case actor == "configuration":
		return ConfigurationActor
	}
	return SystemActor
}
