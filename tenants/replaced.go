package tenants

// A ReplacedEvent is a type of event that later ones of the stream replace:
// they set all that the earlier one did, so it can be removed once it is old.
type ReplacedEvent struct {
	Event  Event  // an empty one
	By     int    // how many later ones replace it
	Switch string // member of its data: if true there, only later events count in which it is true too; empty: all count
}

// ReplacedEvents are all types of events that later ones replace.
func ReplacedEvents() (all []ReplacedEvent) {
	for _, event := range []Event{
		OrganizationRenamed{}, ProjectRenamed{}, SecurityPolicySet{},
		APIKeyRenamed{}, APIKeyLimited{}, APIKeyAccessChanged{},
		MemberRoleChanged{}, MemberResetCodeIssued{}, MemberIdentified{},
		PasskeyUsed{}, WebhookChanged{}, WebhookSwitched{},
	} {
		all = append(all, ReplacedEvent{Event: event, By: 1})
	}
	return append(all,
		ReplacedEvent{Event: MemberPasswordChanged{}, By: 1, Switch: "reset"}, // by a code it also removes the identity
		ReplacedEvent{Event: WebhookRotated{}, By: 2},                         // the previous secret is that of the rotation before
	)
}
