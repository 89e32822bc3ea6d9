// Clusters: constants, special registers, placement, errors, latencies, occupancy.
#include <cstdio>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <cuda.h>
#define CK(x) do{cudaError_t e=(x); if(e!=cudaSuccess){printf("error %s line %d: %s\n",#x,__LINE__,cudaGetErrorName(e));}}while(0)
struct A{unsigned x[16];};
__device__ unsigned sa(const void*p){return (unsigned)__cvta_generic_to_shared(p);}
__device__ unsigned mapa(unsigned a,unsigned r){unsigned o;asm volatile("mapa.shared::cluster.u32 %0,%1,%2;":"=r"(o):"r"(a),"r"(r));return o;}
__device__ void cbar(){asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;":::"memory");}
#define SR(n) ({unsigned v;asm volatile("mov.u32 %0,%%" n ";":"=r"(v));v;})
// Words of constant bank 0 before the parameters.
__global__ void bank(const __grid_constant__ A a,unsigned*out,int from){ for(int i=threadIdx.x;i<132;i+=32) out[i]=a.x[(from/4+i)]; }
__global__ void regs(unsigned*out){ __shared__ int s[4]; s[0]=1; unsigned b=blockIdx.x+gridDim.x*(blockIdx.y+gridDim.y*blockIdx.z); if(threadIdx.x) return; unsigned*o=out+b*24;
  o[0]=SR("cluster_ctaid.x");o[1]=SR("cluster_ctaid.y");o[2]=SR("cluster_ctaid.z");o[3]=SR("cluster_ctarank");o[4]=SR("cluster_nctarank");o[5]=SR("clusterid.x");o[6]=SR("clusterid.y");o[7]=SR("clusterid.z");o[8]=SR("nclusterid.x");o[9]=SR("nclusterid.y");o[10]=SR("nclusterid.z");o[11]=SR("cluster_nctaid.x");o[12]=SR("cluster_nctaid.y");o[13]=SR("cluster_nctaid.z");o[14]=SR("smid");
  unsigned e;asm volatile("{.reg .pred p; mov.pred p,%%is_explicit_cluster; selp.u32 %0,1,0,p;}":"=r"(e));o[15]=e; o[16]=sa(s); unsigned long long g=(unsigned long long)(void*)s; o[17]=g;o[18]=g>>32; unsigned rk;asm volatile("getctarank.shared::cluster.u32 %0,%1;":"=r"(rk):"r"(sa(s)));o[19]=rk; o[20]=SR("gridid");
  for(int i=0;i<2000;i++) asm volatile("nanosleep.u32 100;"); }
__cluster_dims__(2,1,1) __global__ void fixed2(int*o){ if(o&&threadIdx.x==0) o[blockIdx.x]=SR("cluster_nctarank"); }
__global__ void plain(int*o){ if(o&&threadIdx.x==0) o[blockIdx.x]=SR("cluster_nctarank"); }
__global__ void bigsmem(int*o){ extern __shared__ int s[]; if(o) o[0]=s[threadIdx.x]; }
// latencies: out[0] ld chain, [1] st+ld?, [2] atom chain, [3] cluster barrier, [4] local ld chain, [5] remote mbarrier round trip, [6] st.async to wait
__global__ void lat(long long*out,unsigned to){ __shared__ alignas(16) unsigned s[256]; __shared__ alignas(8) unsigned long long bar[2]; unsigned me=SR("cluster_ctarank");
  if(threadIdx.x<32) for(int i=threadIdx.x;i<256;i+=32) s[i]=0; unsigned b=sa(bar);
  if(threadIdx.x==0){asm volatile("mbarrier.init.shared.b64 [%0],%1;"::"r"(b),"r"(1u):"memory");asm volatile("mbarrier.init.shared.b64 [%0],%1;"::"r"(b+8),"r"(1u):"memory");}
  __syncthreads(); cbar(); unsigned base=sa(s);
  if(me==0&&threadIdx.x==0){ unsigned r=mapa(base,to),v=0; long long t0,t1;
   for(int w=0;w<2;w++){ t0=clock64(); for(int i=0;i<64;i++){asm volatile("ld.shared::cluster.u32 %0,[%1];":"=r"(v):"r"(r+v));} t1=clock64()+(v&0); out[0]=(t1-t0);
   t0=clock64(); for(int i=0;i<64;i++){asm volatile("atom.shared::cluster.add.u32 %0,[%1],0;":"=r"(v):"r"(r+v));} t1=clock64()+(v&0); out[2]=(t1-t0);
   t0=clock64(); for(int i=0;i<64;i++){asm volatile("ld.shared.u32 %0,[%1];":"=r"(v):"r"(base+v));} t1=clock64()+(v&0); out[4]=(t1-t0);
   t0=clock64(); for(int i=0;i<64;i++){asm volatile("st.shared::cluster.u32 [%0],%1;"::"r"(r+4*i),"r"(0));} t1=clock64(); out[1]=t1-t0;
   t0=clock64(); unsigned x; asm volatile("fence.acq_rel.cluster;":::"memory"); t1=clock64(); out[7]=t1-t0;
   t0=clock64(); asm volatile("st.shared::cluster.u32 [%0],%1;"::"r"(r),"r"(0)); asm volatile("fence.acq_rel.cluster;":::"memory"); t1=clock64(); out[8]=t1-t0;
   unsigned long long v2;
   t0=clock64(); for(int i=0;i<64;i++){unsigned a,bb,c,d;asm volatile("ld.shared::cluster.v4.u32 {%0,%1,%2,%3},[%4];":"=r"(a),"=r"(bb),"=r"(c),"=r"(d):"r"(r+v));v=a&bb&c&d;} t1=clock64()+(v&0); out[9]=(t1-t0);
   }
  }
  cbar(); long long t0=clock64(); for(int i=0;i<64;i++) cbar(); long long t1=clock64(); if(me==0&&threadIdx.x==0) out[3]=t1-t0; cbar();
  // ping pong of remote arrivals
  if(threadIdx.x==0&&(me==0||me==to)&&to!=0){ unsigned peer=mapa(b,me==0?to:0); unsigned p; t0=clock64();
   for(int i=0;i<64;i++){ if(me==0){asm volatile("mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _,[%0];"::"r"(peer):"memory");}
     do{asm volatile("{.reg .pred p; mbarrier.try_wait.parity.relaxed.cluster.shared.b64 p,[%1],%2; selp.u32 %0,1,0,p;}":"=r"(p):"r"(b),"r"(i&1):"memory");}while(!p);
     if(me!=0){asm volatile("mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _,[%0];"::"r"(peer):"memory");} }
   t1=clock64(); if(me==0) out[5]=t1-t0; }
  cbar();
  if(threadIdx.x==0&&(me==0||me==to)&&to!=0){ unsigned pb=mapa(b+8,me==0?to:0),pd=mapa(base,me==0?to:0); unsigned p; t0=clock64();
   for(int i=0;i<64;i++){ unsigned long long tk; asm volatile("mbarrier.arrive.expect_tx.shared.b64 %0,[%1],4;":"=l"(tk):"r"(b+8):"memory");
     if(me==0) asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0],%1,[%2];"::"r"(pd),"r"(i),"r"(pb):"memory");
     do{asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p,[%1],%2; selp.u32 %0,1,0,p;}":"=r"(p):"r"(b+8),"r"(i&1):"memory");}while(!p);
     if(me!=0) asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0],%1,[%2];"::"r"(pd),"r"(i),"r"(pb):"memory"); }
   t1=clock64(); if(me==0) out[6]=t1-t0; }
  cbar(); }
// bandwidth: 256 threads read 16 bytes each from the next CTA, many times
__global__ void bw(long long*out,int iters){ extern __shared__ uint4 buf[]; unsigned me=SR("cluster_ctarank"),n=SR("cluster_nctarank"); for(int i=threadIdx.x;i<1024;i+=blockDim.x) buf[i]=make_uint4(0,0,0,0); __syncthreads(); cbar(); unsigned r=mapa(sa(buf),(me+1)%n); unsigned acc=0; long long t0=clock64();
 for(int i=0;i<iters;i++){unsigned a,b,c,d;asm volatile("ld.shared::cluster.v4.u32 {%0,%1,%2,%3},[%4];":"=r"(a),"=r"(b),"=r"(c),"=r"(d):"r"(r+16*((threadIdx.x+i*blockDim.x)%1024)));acc+=a+b+c+d;} long long t1=clock64(); __syncthreads(); cbar(); if(acc==12345) out[1]=1; if(threadIdx.x==0&&blockIdx.x==0) out[0]=t1-t0; }
__global__ void plb(unsigned*out){ if(threadIdx.x==0){unsigned b=blockIdx.x; out[2*b]=SR("smid"); out[2*b+1]=SR("cluster_ctarank");} for(int i=0;i<300;i++) asm volatile("nanosleep.u32 100;"); }
// faults
__global__ void fault(int mode,unsigned*out){ __shared__ unsigned s[64]; s[threadIdx.x%64]=threadIdx.x; __syncthreads(); cbar(); unsigned me=SR("cluster_ctarank"); unsigned v=0;
 if(mode==0&&me==0){ unsigned a=mapa(sa(s),5); asm volatile("ld.shared::cluster.u32 %0,[%1];":"=r"(v):"r"(a)); }
 if(mode==1){ if(me==1) return; for(int i=0;i<200;i++) asm volatile("nanosleep.u32 1000;"); unsigned a=mapa(sa(s),1); asm volatile("ld.shared::cluster.u32 %0,[%1];":"=r"(v):"r"(a)); }
 if(mode==2&&me==0){ unsigned a=mapa(sa(s),1)+0x30000; asm volatile("ld.shared::cluster.u32 %0,[%1];":"=r"(v):"r"(a)); }
 if(mode==3&&me==0){ unsigned a=mapa(sa(s),1)+1; asm volatile("ld.shared::cluster.u32 %0,[%1];":"=r"(v):"r"(a)); }
 if(mode==4&&me==0){ unsigned a=mapa(sa(s),1); asm volatile("ld.shared.u32 %0,[%1];":"=r"(v):"r"(a)); }
 if(mode==5&&me==0){ unsigned a=sa(s)+4; asm volatile("mbarrier.init.shared.b64 [%0],1;"::"r"(a):"memory"); }
 if(mode==6&&me==0){ unsigned a=sa(s)+0x30000; unsigned long long t; asm volatile("mbarrier.arrive.shared.b64 %0,[%1];":"=l"(t):"r"(a):"memory"); v=t; }
 if(mode==7){ if(me==1) return; for(int i=0;i<200;i++) asm volatile("nanosleep.u32 1000;"); unsigned a=mapa(sa(s),1); asm volatile("st.shared::cluster.u32 [%0],%1;"::"r"(a),"r"(v)); }
 if(mode==8&&me==0){ unsigned a=sa(s)+8; unsigned long long t; asm volatile("mbarrier.init.shared.b64 [%0],1;"::"r"(a):"memory"); asm volatile("mbarrier.arrive.shared.b64 %0,[%1],2;":"=l"(t):"r"(a):"memory"); v=t; }
 if(mode==9){ if(me==0) { v=1; } else cbar(); if(me==0) {cbar();} }
 if(mode==10){ if(me==1) return; cbar(); v=7; }
 if(mode==11&&me==0){ unsigned a=sa(s)+8; asm volatile("mbarrier.init.shared.b64 [%0],%1;"::"r"(a),"r"(v):"memory"); v=3;}
 if(mode==12&&me==0){ unsigned a=mapa(sa(s),1)+4; asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _,[%0];"::"r"(a):"memory"); }
 if(mode==13&&me==0){ unsigned long long g=(unsigned long long)s; unsigned long long a; asm volatile("mapa.u64 %0,%1,1;":"=l"(a):"l"(g)); v=*(volatile unsigned*)a; out[1]=a; out[2]=a>>32; unsigned e,f; asm volatile("{.reg .pred p; isspacep.shared::cluster p,%1; selp.u32 %0,1,0,p;}":"=r"(e):"l"(a)); asm volatile("{.reg .pred p; isspacep.shared::cta p,%1; selp.u32 %0,1,0,p;}":"=r"(f):"l"(a)); out[3]=e; out[4]=f; out[5]=__isShared((void*)a); unsigned long long old=atomicCAS((unsigned long long*)a,0ull,5ull); out[6]=old; out[7]=atomicAdd((unsigned*)a,3u); float fo=atomicAdd((float*)a+4,1.0f); out[8]=__float_as_uint(fo); out[9]=*(volatile unsigned*)a; out[10]=*((volatile unsigned*)a+4);}
 cbar(); if(mode==4&&me==0&&threadIdx.x==0) out[20]=s[0]; if(threadIdx.x==0&&me==0){out[0]=v;} }
template<class F,class...T> cudaError_t go(F f,dim3 g,dim3 b,int smem,dim3 c,int extra,T...args){ cudaLaunchConfig_t cfg={};cfg.gridDim=g;cfg.blockDim=b;cfg.dynamicSmemBytes=smem; cudaLaunchAttribute at[4];int n=0; if(c.x||c.y||c.z||extra==9){at[n].id=cudaLaunchAttributeClusterDimension;at[n].val.clusterDim.x=c.x;at[n].val.clusterDim.y=c.y;at[n].val.clusterDim.z=c.z;n++;} if(extra==1){at[n].id=cudaLaunchAttributeCooperative;at[n].val.cooperative=1;n++;} if(extra==2){at[n].id=cudaLaunchAttributePreferredClusterDimension;at[n].val.preferredClusterDim.x=2*c.x;at[n].val.preferredClusterDim.y=c.y;at[n].val.preferredClusterDim.z=c.z;n++;} if(extra==3){at[n].id=cudaLaunchAttributeClusterSchedulingPolicyPreference;at[n].val.clusterSchedulingPolicyPreference=cudaClusterSchedulingPolicySpread;n++;} if(extra==4){at[n].id=cudaLaunchAttributeClusterSchedulingPolicyPreference;at[n].val.clusterSchedulingPolicyPreference=cudaClusterSchedulingPolicyLoadBalancing;n++;} cfg.attrs=at;cfg.numAttrs=n; return cudaLaunchKernelEx(&cfg,f,args...);}
static void say(const char*what,cudaError_t e){cudaError_t s=cudaDeviceSynchronize();cudaError_t l=cudaGetLastError();printf("%s,%d,%s,sync %d,last %d\n",what,(int)e,cudaGetErrorName(e),(int)s,(int)l);fflush(stdout);}
int main(int n,char**v){ const char*m=n>1?v[1]:"base"; unsigned*o;CK(cudaMallocManaged(&o,1<<22)); memset(o,0,1<<22);
 if(!strcmp(m,"fault")){ int mode=atoi(v[2]); cudaError_t e=go(fault,2,32,0,2,0,mode,o); cudaError_t s=cudaDeviceSynchronize(); printf("fault,%d,launch %d,sync %d %s",mode,(int)e,(int)s,cudaGetErrorName(s)); if(!s) for(int i=0;i<12;i++)printf(",%x",o[i]); printf("\n");return 0;}
 int dev=0; cudaDeviceProp p; CK(cudaGetDeviceProperties(&p,0)); printf("device,%s,sms %d\n",p.name,p.multiProcessorCount); int val; cudaDeviceGetAttribute(&val,cudaDevAttrClusterLaunch,0); printf("attr cluster launch,%d\n",val);
 // constants
 struct{dim3 g,c;int smem;} cs[]={{dim3(4),dim3(0,0,0),0},{dim3(4),dim3(2,1,1),0},{dim3(12,6,4),dim3(3,2,1),0},{dim3(10,7,3),dim3(5,1,3),0},{dim3(6),dim3(1,1,1),0}};
 for(auto&c:cs){ A a; for(int i=0;i<16;i++)a.x[i]=0xaaaa0000+i; cudaError_t e=go(bank,c.g,32,0,c.c,0,a,o,-0x210); cudaError_t s=cudaDeviceSynchronize(); printf("bank,%u %u %u,%u %u %u,%d,%d:",c.g.x,c.g.y,c.g.z,c.c.x,c.c.y,c.c.z,e,s); for(int i=0;i<132;i++){ if(i%8==0)printf("\n  %03x:",4*i); printf(" %08x",o[i]); } printf("\n"); if(s){printf("context lost\n");return 1;} }
 for(auto&c:cs){ memset(o,0,1<<20); cudaError_t e=go(regs,c.g,32,0,c.c,0,o); cudaError_t s=cudaDeviceSynchronize(); printf("regs,%u %u %u,%u %u %u,%d,%d\n",c.g.x,c.g.y,c.g.z,c.c.x,c.c.y,c.c.z,e,s); unsigned nb=c.g.x*c.g.y*c.g.z; for(unsigned b=0;b<nb&&b<300;b++){printf(" %u:",b);for(int i=0;i<20;i++)printf(" %x",o[b*24+i]);printf("\n");} }
 // errors
 CK(cudaGetLastError()); int*np=nullptr;
 say("zero cluster",go(plain,8,32,0,dim3(0,0,0),9,np)); say("cluster 0 1 1",go(plain,8,32,0,dim3(0,1,1),9,np)); say("cluster 3 of 8",go(plain,8,32,0,dim3(3,1,1),0,np)); say("cluster 8",go(plain,16,32,0,dim3(8,1,1),0,np)); say("cluster 9",go(plain,18,32,0,dim3(9,1,1),0,np)); say("cluster 16",go(plain,16,32,0,dim3(16,1,1),0,np)); say("cluster 32",go(plain,32,32,0,dim3(32,1,1),0,np));
 CK(cudaFuncSetAttribute(plain,cudaFuncAttributeNonPortableClusterSizeAllowed,1)); say("np cluster 9",go(plain,18,32,0,dim3(9,1,1),0,np)); say("np cluster 16",go(plain,16,32,0,dim3(16,1,1),0,np)); say("np cluster 17",go(plain,17,32,0,dim3(17,1,1),0,np)); say("np cluster 32",go(plain,32,32,0,dim3(32,1,1),0,np)); say("np cluster 4x4",go(plain,dim3(8,8),32,0,dim3(4,4,1),0,np)); say("np cluster 16 1024 threads",go(plain,16,1024,0,dim3(16,1,1),0,np));
 say("fixed2 triple",(fixed2<<<4,32>>>(np),cudaGetLastError())); say("fixed2 triple odd grid",(fixed2<<<3,32>>>(np),cudaGetLastError())); say("fixed2 attr 2",go(fixed2,4,32,0,dim3(2,1,1),0,np)); say("fixed2 attr 4",go(fixed2,4,32,0,dim3(4,1,1),0,np)); say("fixed2 attr 1",go(fixed2,4,32,0,dim3(1,1,1),0,np)); say("fixed2 attr 1 2",go(fixed2,dim3(4,4),32,0,dim3(1,2,1),0,np));
 say("cooperative cluster",go(plain,8,32,0,dim3(2,1,1),1,np)); say("preferred",go(plain,8,32,0,dim3(2,1,1),2,np)); say("spread",go(plain,8,32,0,dim3(2,1,1),3,np)); say("balance",go(plain,8,32,0,dim3(2,1,1),4,np));
 CK(cudaFuncSetAttribute(bigsmem,cudaFuncAttributeMaxDynamicSharedMemorySize,227*1024)); say("big 8x227K",go(bigsmem,8,32,227*1024,dim3(8,1,1),0,np)); CK(cudaFuncSetAttribute(bigsmem,cudaFuncAttributeNonPortableClusterSizeAllowed,1)); say("big 16x227K",go(bigsmem,16,32,227*1024,dim3(16,1,1),0,np));
 say("required width set on plain",cudaFuncSetAttribute(bigsmem,cudaFuncAttributeRequiredClusterWidth,2)); say("bigsmem after required, attr 4",go(bigsmem,8,32,0,dim3(4,1,1),0,np)); say("bigsmem after required, no attr",go(bigsmem,8,32,0,dim3(0,0,0),0,np)); say("required on fixed2",cudaFuncSetAttribute(fixed2,cudaFuncAttributeRequiredClusterWidth,4)); say("mustbeset set",cudaFuncSetAttribute(plain,cudaFuncAttributeClusterDimMustBeSet,1));
 cudaFuncAttributes fa; cudaFuncGetAttributes(&fa,fixed2); printf("fa fixed2: mustset %d w %d h %d d %d policy %d np %d\n",fa.clusterDimMustBeSet,fa.requiredClusterWidth,fa.requiredClusterHeight,fa.requiredClusterDepth,fa.clusterSchedulingPolicyPreference,fa.nonPortableClusterSizeAllowed); cudaFuncGetAttributes(&fa,plain); printf("fa plain: mustset %d w %d h %d d %d policy %d np %d\n",fa.clusterDimMustBeSet,fa.requiredClusterWidth,fa.requiredClusterHeight,fa.requiredClusterDepth,fa.clusterSchedulingPolicyPreference,fa.nonPortableClusterSizeAllowed);cudaFuncGetAttributes(&fa,bigsmem); printf("fa bigsmem: mustset %d w %d h %d d %d policy %d np %d\n",fa.clusterDimMustBeSet,fa.requiredClusterWidth,fa.requiredClusterHeight,fa.requiredClusterDepth,fa.clusterSchedulingPolicyPreference,fa.nonPortableClusterSizeAllowed);
 // occupancy
 for(int np=0;np<2;np++){ cudaFuncSetAttribute(lat,cudaFuncAttributeNonPortableClusterSizeAllowed,np); cudaFuncSetAttribute(bw,cudaFuncAttributeNonPortableClusterSizeAllowed,np); cudaFuncSetAttribute(bw,cudaFuncAttributeMaxDynamicSharedMemorySize,227*1024);
 for(int thr:{32,256,1024}) for(int sm:{0,65536,114688,232448}) { cudaLaunchConfig_t cfg={};cfg.gridDim=16*64;cfg.blockDim=thr;cfg.dynamicSmemBytes=sm; int cl=-1; cudaError_t e=cudaOccupancyMaxPotentialClusterSize(&cl,bw,&cfg); printf("potential,np %d,threads %d,smem %d,%d,%d",np,thr,sm,(int)e,cl); for(int c:{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,18}){ cfg.gridDim=c*64; cudaLaunchAttribute at[1];at[0].id=cudaLaunchAttributeClusterDimension;at[0].val.clusterDim.x=c;at[0].val.clusterDim.y=1;at[0].val.clusterDim.z=1;cfg.attrs=at;cfg.numAttrs=1; int nc=-1; e=cudaOccupancyMaxActiveClusters(&nc,bw,&cfg); printf(",c%d:%d/%d",c,(int)e,nc);} printf("\n"); cudaGetLastError(); }
 }
 { cudaLaunchConfig_t cfg={};cfg.gridDim=64;cfg.blockDim=32; int nc=-1; cudaError_t e=cudaOccupancyMaxActiveClusters(&nc,fixed2,&cfg); printf("active fixed2 no attr,%d,%d\n",(int)e,nc); e=cudaOccupancyMaxActiveClusters(&nc,plain,&cfg); printf("active plain no attr,%d,%d\n",(int)e,nc); int cl; e=cudaOccupancyMaxPotentialClusterSize(&cl,fixed2,&cfg); printf("potential fixed2,%d,%d\n",(int)e,cl); cfg.gridDim=7; cudaLaunchAttribute at[1];at[0].id=cudaLaunchAttributeClusterDimension;at[0].val.clusterDim.x=2;at[0].val.clusterDim.y=1;at[0].val.clusterDim.z=1;cfg.attrs=at;cfg.numAttrs=1; e=cudaOccupancyMaxActiveClusters(&nc,plain,&cfg); printf("active plain grid 7 of 2,%d,%d\n",(int)e,nc); cudaGetLastError();}
 // latencies
 for(unsigned c:{1u,2u,4u,8u,16u}) for(unsigned to:{0u,1u,c/2,c-1}) { if(to>=c) continue; long long*q=(long long*)o; memset(o,0,1024); cudaError_t e=go(lat,c,32,0,dim3(c,1,1),0,q,to); cudaError_t s=cudaDeviceSynchronize(); printf("lat,%u,%u,%d,%d",c,to,e,s); for(int i=0;i<10;i++)printf(",%.1f",(i==7||i==8)?(double)q[i]:q[i]/64.0); printf("\n"); }
 for(unsigned c:{1u,2u,4u,8u,16u}) for(int thr:{32,128,256,1024}) { long long*q=(long long*)o; cudaError_t e=go(bw,c,thr,16384,dim3(c,1,1),0,q,64); cudaError_t s=cudaDeviceSynchronize(); printf("bw,%u,%d,%d,%d,%lld,%.2f B/clk/SM\n",c,thr,e,s,q[0],64.0*thr*16/q[0]); }
 // placement
 for(unsigned c:{1u,2u,3u,4u,5u,6u,7u,8u,12u,16u}) for(int r=0;r<2;r++){ cudaFuncSetAttribute(plb,cudaFuncAttributeNonPortableClusterSizeAllowed,1); unsigned nb=c*40; cudaError_t e=go(plb,nb,1024,0,dim3(c,1,1),0,o); cudaError_t s=cudaDeviceSynchronize(); printf("place,%u,%d,%d:",c,e,s); for(unsigned b=0;b<nb;b++)printf("%s%u",b%c?" ":";",o[2*b]); printf("\n"); }
}
