package main

import (
	"fmt"
	"net"
	"strconv"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	router "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	manager "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

var ads = &core.ConfigSource{
	ResourceApiVersion:    core.ApiVersion_V3,
	ConfigSourceSpecifier: &core.ConfigSource_Ads{Ads: &core.AggregatedConfigSource{}},
}

type resources = map[resource.Type][]types.Resource

// contents are those of a round, whose endpoint is at an address.
func contents(step string, number int, at string) (resources, error) {
	host, port, err := net.SplitHostPort(at)
	if err != nil {
		return nil, err
	}
	portNumber, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, err
	}
	turn := number
	if step == "return" {
		turn = number % 2
	}
	name := fmt.Sprintf("k%d", turn)
	routes := routesTo(name)
	switch {
	case step == "move" || step == "return":
		routes.Name = fmt.Sprintf("r%d", turn)
	case step == "inline" && number%2 == 1:
		routes.Name = "inline"
	}
	of := resources{
		resource.ClusterType:  {clusterOf(name)},
		resource.EndpointType: {endpointAt(name, host, uint32(portNumber))},
	}
	if routes.Name != "inline" {
		of[resource.RouteType] = []types.Resource{routes}
	}
	svc, err := listenerWith(routes)
	of[resource.ListenerType] = []types.Resource{svc}
	return of, err
}

func routesTo(name string) *route.RouteConfiguration {
	all := &route.Route{
		Match: &route.RouteMatch{PathSpecifier: &route.RouteMatch_Prefix{Prefix: ""}},
		Action: &route.Route_Route{Route: &route.RouteAction{
			ClusterSpecifier: &route.RouteAction_Cluster{Cluster: name},
		}},
	}
	host := &route.VirtualHost{Name: "all", Domains: []string{"*"}, Routes: []*route.Route{all}}
	return &route.RouteConfiguration{Name: "r", VirtualHosts: []*route.VirtualHost{host}}
}

func listenerWith(routes *route.RouteConfiguration) (*listener.Listener, error) {
	routing, err := anypb.New(&router.Router{})
	if err != nil {
		return nil, err
	}
	http := &manager.HttpConnectionManager{
		HttpFilters: []*manager.HttpFilter{{
			Name:       "envoy.filters.http.router",
			ConfigType: &manager.HttpFilter_TypedConfig{TypedConfig: routing},
		}},
		RouteSpecifier: &manager.HttpConnectionManager_Rds{Rds: &manager.Rds{
			RouteConfigName: routes.Name, ConfigSource: ads,
		}},
	}
	if routes.Name == "inline" {
		http.RouteSpecifier = &manager.HttpConnectionManager_RouteConfig{RouteConfig: routes}
	}
	api, err := anypb.New(http)
	return &listener.Listener{Name: "svc", ApiListener: &listener.ApiListener{ApiListener: api}}, err
}

func clusterOf(name string) *cluster.Cluster {
	return &cluster.Cluster{
		Name:                 name,
		ClusterDiscoveryType: &cluster.Cluster_Type{Type: cluster.Cluster_EDS},
		EdsClusterConfig:     &cluster.Cluster_EdsClusterConfig{EdsConfig: ads},
	}
}

func endpointAt(name, host string, port uint32) *endpoint.ClusterLoadAssignment {
	address := &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{
		Address: host, PortSpecifier: &core.SocketAddress_PortValue{PortValue: port},
	}}}
	one := &endpoint.LbEndpoint{HostIdentifier: &endpoint.LbEndpoint_Endpoint{
		Endpoint: &endpoint.Endpoint{Address: address},
	}}
	return &endpoint.ClusterLoadAssignment{
		ClusterName: name,
		Endpoints: []*endpoint.LocalityLbEndpoints{{
			Locality:            &core.Locality{Region: "here"},
			LoadBalancingWeight: wrapperspb.UInt32(1),
			LbEndpoints:         []*endpoint.LbEndpoint{one},
		}},
	}
}
