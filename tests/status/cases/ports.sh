# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Ports that are down, alone or beside one that is up.
section="RDMA device mlx5_0"
port mlx5_0 1 "1: DOWN" "2: Polling" InfiniBand
look 0
only_these "port 1"
says "$section" "port 1" bad "DOWN, Polling" ibstat
port mlx5_0 1 "1: DOWN" "3: Disabled" Ethernet
look 0
says "$section" "port 1" bad "DOWN, Disabled" "ip link set"
port mlx5_0 1 "2: INIT" "5: LinkUp" InfiniBand
look 0
says "$section" "port 1" bad "INIT, LinkUp" "subnet manager"
port mlx5_0 2 "4: ACTIVE" "5: LinkUp" InfiniBand
look 0
only_these "port 1"
says "$section" "port 1" warn INIT
says "$section" "port 2" good ACTIVE
