package azure

import (
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"

	"github.com/tasuki-io/tasuki/internal/executor"
)

const nicType = "Microsoft.Network/networkInterfaces"

// resourceOf finds the NIC of a request: a whole resource ID, or a name in the resource group of
// the profile.
func resourceOf(q executor.Request) (*arm.ResourceID, error) {
	whole := q.NIC
	if !strings.Contains(q.NIC, "/") {
		if q.Profile.Subscription == "" || q.Profile.ResourceGroup == "" {
			return nil, fmt.Errorf("nicRef %s is a name, and profile %s does not say of which subscription and resourceGroup: set both, or write the whole resource ID", q.NIC, q.Profile.Name)
		}
		whole = fmt.Sprintf("/subscriptions/%s/resourceGroups/%s/providers/%s/%s", q.Profile.Subscription, q.Profile.ResourceGroup, nicType, q.NIC)
	}
	id, err := arm.ParseResourceID(whole)
	switch {
	case err != nil:
		return nil, fmt.Errorf("nicRef %s: write the name of a NIC, or its whole resource ID: %w", q.NIC, err)
	case !isNIC(id):
		return nil, fmt.Errorf("nicRef %s is of type %s, and only a NIC of its own (%s) can be changed", q.NIC, id.ResourceType, nicType)
	}
	return id, nil
}

// isNIC reports a NIC that can be changed by itself. One of a scale set cannot.
func isNIC(id *arm.ResourceID) bool {
	return strings.EqualFold(id.ResourceType.String(), nicType)
}

// name is what people know a resource by. Of a NIC it is what nicRef would be.
func (s *session) name(id *arm.ResourceID) string {
	if same(id, s.here) {
		return s.NIC
	}
	if isNIC(id) && strings.EqualFold(id.SubscriptionID, s.Profile.Subscription) && strings.EqualFold(id.ResourceGroupName, s.Profile.ResourceGroup) {
		return id.Name
	}
	return id.String()
}

// same reports two IDs of one resource: ARM minds no case, and does not keep it either.
func same(a, b *arm.ResourceID) bool { return strings.EqualFold(a.String(), b.String()) }
